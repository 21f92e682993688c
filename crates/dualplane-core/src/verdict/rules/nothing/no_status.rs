//! A pod's manifest without a status says nothing of how it went.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "no_status",
    stage: Stage::Nothing,
    classes: &[Class::Unknown],
    when: "only the pod's object is at hand, and it has no status",
    near_miss: "the same object beside an event or a log",
    beats: &[Beats::rule("nothing_failed", "a manifest cannot show that nothing failed")],
    source: "Kubernetes API: PodStatus",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let pod = case.pod().ok_or_else(|| unmet("no pod is at hand"))?;
    let told = pod.containers.iter().any(|c| c.status.is_some()) || pod.reason.is_some();
    if case.facts.has_life() || told || !case.bundle.events.is_empty() {
        return Err(unmet("a log, an event or a status is at hand"));
    }
    let summary = "the pod's object carries no status, so it says nothing of how it went";
    Ok(decided(Class::Unknown, case.end_phase(), Confidence::Low, summary, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, log, near_miss, pod_with};

    fn manifest() -> File {
        pod_with(0, "", |p| {
            p.as_object_mut().unwrap().remove("status");
        })
    }

    #[test]
    fn a_manifest_says_nothing_of_its_run() {
        holds(&RULE, &[manifest()]);
    }

    #[test]
    fn beside_a_log_the_log_speaks() {
        near_miss(&RULE, "nothing_failed", &[manifest(), log("INFO: Started server process [1]\n")]);
    }
}
