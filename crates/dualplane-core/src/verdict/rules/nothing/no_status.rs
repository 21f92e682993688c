//! A pod's manifest without a status says nothing of how it went.

use super::{Beats, Judged, Rule, Stage, decided, unmet};
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "no_status",
    stage: Stage::Nothing,
    classes: &[Class::Unknown],
    when: "the evidence contains only the pod object, and it has no status",
    near_miss: "the same object together with an event or a log",
    beats: &[Beats::rule("end_not_shown", "a manifest cannot show that nothing failed")],
    source: "Kubernetes API: PodStatus",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let pod = case.pod().ok_or_else(|| unmet("there is no pod object"))?;
    let told = pod.containers.iter().any(|c| c.status.is_some()) || pod.reason.is_some();
    if case.facts.has_life() || told || !case.bundle.events.is_empty() {
        return Err(unmet("there is a log, an event or a status"));
    }
    let summary = "the pod object has no status, so it does not show how the pod ended";
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
        near_miss(
            &RULE,
            "end_not_shown",
            &[manifest(), log("INFO 06-18 08:01:00 [api_server.py:1977] vLLM API server\n")],
        );
    }
}
