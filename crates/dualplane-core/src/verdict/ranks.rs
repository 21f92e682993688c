//! The pods of the other ranks: where one rank only tells that another is gone, that one's pod has the cause.

use super::missing::Names;
use super::{Class, Decided, Subject};
use crate::evidence::{Bundle, Gap};
use crate::facts::Facts;

/// Labels that all pods of one server over several pods share, by who sets them.
const GROUPS: &[&str] = &[
    // LeaderWorkerSet: pods of one group, leader and workers; the name alone is of all its groups.
    "leaderworkerset.sigs.k8s.io/group-key",
    "leaderworkerset.sigs.k8s.io/name",
    "ray.io/cluster",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
    "app.kubernetes.io/instance",
    "app",
];
/// The longest value that a label has.
const LONGEST_VALUE: usize = 63;

/// What to ask for, where this pod's end is not explained but by another rank's.
pub(super) fn missing(bundle: &Bundle, facts: &Facts, decided: &Decided, subject: &Subject) -> Option<Gap> {
    if decided.class != Class::Unknown || !facts.hits.iter().any(|h| h.other_rank) {
        return None;
    }
    let n = Names::of(subject);
    let pod = bundle.pods.iter().find(|p| Some(p.name.as_str()) == subject.pod.as_deref());
    let group = pod
        .and_then(|p| GROUPS.iter().find_map(|key| p.labels.iter().find(|(k, v)| k == key && is_value(v))));
    let command = match group {
        Some((key, value)) => format!("dualplane triage -l {key}={value} -n {}", n.ns),
        None => format!(
            "kubectl get pods -n {} -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName,\
             ENDED:.status.containerStatuses[*].state.terminated.finishedAt,\
             BEFORE:.status.containerStatuses[*].lastState.terminated.finishedAt",
            n.ns
        ),
    };
    Some(Gap {
        what: "the pods of the other ranks".to_owned(),
        why: "this one tells only that another rank was gone; the rank that ended first has the cause"
            .to_owned(),
        command: Some(command),
    })
}

/// A value as Kubernetes allows it: it needs no quotes in a shell and is no flag.
fn is_value(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    (1..=LONGEST_VALUE).contains(&text.len())
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|c| plain(c) || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::is_value;

    #[test]
    fn only_values_that_kubernetes_allows_reach_a_command() {
        for bad in ["", "$(reboot)", "a b", "-l", "x;y", "a\n", "a'", &"a".repeat(64)] {
            assert!(!is_value(bad), "{bad}");
        }
        for good in ["llm", "Llama-3.1_8B", "0"] {
            assert!(is_value(good), "{good}");
        }
    }
}
