//! The condition DisruptionTarget: the scheduler, a taint, an eviction or a garbage collector ended the pod.

use super::{
    Beats, FAILURE, Judged, LIFE, NOTHING, Rule, SIGNAL, SYMPTOM, Stage, UNEXPLAINED, decided, unmet,
};
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "disruption",
    stage: Stage::Outside,
    classes: &[Class::NotMemory],
    when: "the pod has the condition DisruptionTarget, and its message does not name memory",
    near_miss: "DisruptionTarget of an eviction for memory",
    beats: &[
        Beats::rule("pod_deleted", "the condition says who had the pod deleted"),
        Beats::rule("container_stopped", "the condition says why the container is stopped"),
        SIGNAL,
        SYMPTOM,
        FAILURE,
        UNEXPLAINED,
        LIFE,
        NOTHING,
    ],
    source: "Kubernetes pod conditions: DisruptionTarget (PreemptionByScheduler, DeletionByTaintManager, EvictionByEvictionAPI, TerminationByKubelet)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let c = case
        .pod()
        .into_iter()
        .flat_map(|p| &p.conditions)
        .find(|c| c.kind == "DisruptionTarget" && c.holds)
        .ok_or_else(|| unmet("the pod has no condition DisruptionTarget"))?;
    if c.message.contains("resource: memory") {
        return Err(unmet("DisruptionTarget names memory"));
    }
    let proof = Status::Disruption { reason: c.reason.clone(), message: c.message.clone() };
    Ok(decided(
        Class::NotMemory,
        case.end_phase(),
        Confidence::High,
        format!("the pod was terminated externally ({})", c.reason),
        vec![Cited::at(proof, &case.pod_place())],
    ))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, near_miss, pod_with};
    use serde_json::json;

    fn condition(message: &str) -> File {
        pod_with(137, "Error", |p| {
            p["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message}]);
        })
    }

    #[test]
    fn a_disruption_is_an_end_from_outside() {
        holds(&RULE, &[condition("Pod was terminated in response to imminent node shutdown.")]);
    }

    #[test]
    fn an_eviction_for_memory_is_none() {
        near_miss(&RULE, "killed", &[condition("The container used too much of resource: memory")]);
    }
}
