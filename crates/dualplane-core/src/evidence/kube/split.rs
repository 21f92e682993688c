//! Several pods in one pile of files: one bundle for each pod that died, with its own logs and the shared rest.

use crate::evidence::metrics::Sample;
use crate::evidence::{Bundle, Event, Judged, Pod, State};

/// One bundle a dead pod; the whole bundle where at most one died, without the logs of pods that live.
#[must_use]
pub fn by_pod(mut bundle: Bundle) -> Vec<(Option<String>, Bundle)> {
    without_twins(&mut bundle);
    let mut dead: Vec<Pod> = Vec::new();
    for pod in bundle.pods.iter().filter(|p| died(p)) {
        // A bundle may list a pod twice.
        if !dead.iter().any(|d| d.full_name() == pod.full_name() && d.uid == pod.uid) {
            dead.push(pod.clone());
        }
    }
    if let [pod] = dead.as_slice() {
        let pods = std::mem::take(&mut bundle.pods);
        bundle.logs.retain(|l| l.kernel || belongs(&l.name, pod, &pods));
        bundle.pods = pods;
    }
    if dead.len() < 2 {
        return vec![(None, bundle)];
    }
    dead.iter().map(|pod| (Some(pod.full_name()), part(&bundle, pod))).collect()
}

/// Names are not identities. What is told of a twin of a pod (its name in another namespace, or the pod that had its name
/// before) is left out here, once for all that look for a name later; so are events of nodes that no pod is on.
fn without_twins(bundle: &mut Bundle) {
    let Bundle { pods, events, metrics, .. } = bundle;
    let nodes: Vec<&str> = pods.iter().filter_map(|p| p.node.as_deref()).filter(|n| !n.is_empty()).collect();
    let placed = !pods.is_empty() && nodes.len() == pods.len();
    events.retain(|e| match e.object.0.as_str() {
        "Pod" => is_of_one(pods, &e.object.1, |p| is_of(e, p)),
        "Node" => !placed || e.object.1.is_empty() || nodes.contains(&e.object.1.as_str()),
        _ => true,
    });
    metrics.retain(|s| s.about("pod").is_none_or(|name| is_of_one(pods, name, |p| is_sample_of(s, p))));
}

/// No pod has this name, or one that has is meant.
fn is_of_one(pods: &[Pod], name: &str, meant: impl Fn(&Pod) -> bool) -> bool {
    let mut known = pods.iter().filter(|p| p.name == name).peekable();
    known.peek().is_none() || known.any(meant)
}

/// Both are told, and differ.
fn differ(a: &str, b: &str) -> bool {
    !a.is_empty() && !b.is_empty() && a != b
}

/// An event on a pod of this name is of this pod, as far as is told. A static pod's has the hash of its manifest as UID.
fn is_of(event: &Event, pod: &Pod) -> bool {
    let uid = event.object.2.as_str();
    event.object.1 == pod.name
        && !differ(&event.namespace, &pod.namespace)
        && (!differ(uid, &pod.uid) || pod.config_hash.as_deref() == Some(uid))
}

/// A sample with this pod's name is of this pod, as far as its labels tell. kube-state-metrics gives the UID.
fn is_sample_of(s: &Sample, pod: &Pod) -> bool {
    s.about("pod") == Some(&pod.name)
        && !differ(s.about("namespace").unwrap_or_default(), &pod.namespace)
        && (!s.name.starts_with("kube_pod_") || !differ(s.about("uid").unwrap_or_default(), &pod.uid))
}

/// Some container ended badly, or the pod was ended.
pub(crate) fn died(pod: &Pod) -> bool {
    pod.phase == "Failed"
        || pod.reason.is_some()
        || pod.containers.iter().filter(|c| c.overcame().is_none()).filter_map(|c| c.status.as_ref()).any(|s| {
            s.terminations().any(|t| !t.clean())
                || matches!(&s.state, State::Waiting { reason, .. } if reason == "CrashLoopBackOff" || reason.ends_with("Error"))
        })
}

/// A log belongs to the pod whose name stands in its path; one that names no pod belongs to all, and that of `llm-10` to
/// nobody where only `llm-1` is known. Of two pods of one name the namespace in the path decides.
fn belongs(file: &str, pod: &Pod, pods: &[Pod]) -> bool {
    let rank = |p: &Pod| {
        let namespaced = file.split('/').any(|part| {
            part.strip_prefix(p.namespace.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        (stands(file, &p.name) == Some(true)).then_some((p.name.len(), namespaced))
    };
    match pods.iter().filter_map(rank).max() {
        None => !pods.iter().any(|p| stands(file, &p.name) == Some(false)),
        best => rank(pod) == best,
    }
}

/// Whether a pod's name stands in a path; `Some(false)` where it only begins the name of a sibling with a longer number.
fn stands(file: &str, name: &str) -> Option<bool> {
    if name.is_empty() {
        return None;
    }
    let longer = |at: usize| {
        let next = file.get(at + name.len()..).and_then(|rest| rest.bytes().next());
        name.ends_with(|c: char| c.is_ascii_digit()) && next.is_some_and(|b| b.is_ascii_digit())
    };
    file.match_indices(name).map(|(at, _)| !longer(at)).max()
}

/// What belongs to one pod.
fn part(all: &Bundle, pod: &Pod) -> Bundle {
    let mine = |file: &str| belongs(file, pod, &all.pods);
    // Whose end was recorded, and with it what was recorded of that container.
    let of_it = |j: &Judged| pod.containers.iter().any(|c| c.name == j.container);
    Bundle {
        logs: all.logs.iter().filter(|l| l.kernel || mine(&l.name)).cloned().collect(),
        pods: vec![pod.clone()],
        events: all.events.iter().filter(|e| e.object.0 != "Pod" || is_of(e, pod)).cloned().collect(),
        nodes: all.nodes.clone(),
        metrics: all
            .metrics
            .iter()
            .filter(|s| s.about("pod").is_none() || is_sample_of(s, pod))
            .filter(|s| !differ(s.about("namespace").unwrap_or_default(), &pod.namespace))
            .cloned()
            .collect(),
        gpus: all.gpus.clone(),
        cgroups: all.cgroups.iter().filter(|c| mine(&c.file)).cloned().collect(),
        machines: all.machines.clone(),
        tops: all.tops.iter().filter(|t| t.pod == pod.name).cloned().collect(),
        autoscalers: all.autoscalers.clone(),
        disruption_budgets: all.disruption_budgets.clone(),
        summaries: all.summaries.iter().filter(|s| mine(&s.file)).cloned().collect(),
        files: all.files.iter().filter(|f| mine(f)).cloned().collect(),
        rollouts: all.rollouts.clone(),
        quotes: all.quotes.clone(),
        limits: all.limits.clone(),
        judged: all.judged.clone().filter(of_it),
        given: if all.judged.as_ref().is_none_or(of_it) { all.given.clone() } else { Vec::new() },
        processes: all.processes.clone().filter(|_| all.judged.as_ref().is_none_or(of_it)),
        gaps: all.gaps.clone(),
        ..Bundle::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Pod, belongs};

    #[test]
    fn a_log_is_of_the_pod_that_its_path_names_and_of_no_sibling() {
        let pod = |namespace: &str, name: &str| Pod {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Pod::default()
        };
        let pods = [pod("a", "llm-1"), pod("a", "llm-2"), pod("b", "llm-2"), pod("a", "llm-1-proxy")];
        let owners = |file: &str| {
            let of = |p: &&Pod| belongs(file, p, &pods);
            pods.iter().filter(of).map(|p| format!("{}/{}", p.namespace, p.name)).collect::<Vec<_>>()
        };
        assert_eq!(owners("logs/llm-1.log"), ["a/llm-1"]);
        assert_eq!(owners("logs/llm-1-proxy.log"), ["a/llm-1-proxy"]);
        assert_eq!(owners("logs/llm-1_vllm.log"), ["a/llm-1"]);
        assert_eq!(owners("b_llm-2_0e1d/vllm/0.log"), ["b/llm-2"]);
        // Of a pod that nobody listed: not of the one whose name it begins with.
        assert_eq!(owners("logs/llm-10.log"), Vec::<String>::new());
        assert_eq!(owners("logs/llm-10-then-llm-1.log"), ["a/llm-1"]);
        assert_eq!(owners("logs/current.log").len(), 4, "it names nobody");
    }
}
