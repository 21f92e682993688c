//! The kubelet restarts something again and again, and nothing at hand says what it died of.

use super::{Beats, Judged, LIFE, NOTHING, Rule, Stage, decided, unmet};
use crate::evidence::State;
use crate::facts::Hit;
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "restart_loop",
    stage: Stage::Unexplained,
    classes: &[Class::Unknown],
    when: "an event says \"Back-off restarting\", or a status says CrashLoopBackOff or counts restarts without the last \
    end, and there is no log",
    near_miss: "the same event together with the container's log",
    beats: &[
        Beats::rule("death_line", "a restart loop is more specific than a single end"),
        Beats::rule("failure_wrapper", "a restart loop is more specific than a single end"),
        LIFE,
        NOTHING,
    ],
    source: "kubelet pkg/kubelet/kuberuntime: BackOffStartContainer",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if case.facts.has_life() {
        return Err(unmet("there is a log or similar evidence"));
    }
    let back_off = |h: &&Hit| h.mark == Mark::Cascade && h.text.starts_with("Back-off restarting");
    let event = case.facts.object_hits.iter().find(back_off).map(|h| Cited::of(h.text.clone(), h));
    let told = event.or_else(|| restarted(case));
    let supports = vec![told.ok_or_else(|| unmet("no event or status reports a restart loop"))?];
    let summary = "a container keeps restarting, and the evidence does not show how it ends";
    Ok(decided(Class::Unknown, case.end_phase(), Confidence::Low, summary, supports))
}

/// A status that waits for the next restart or counts restarts, and does not hold the end before.
fn restarted(case: &Case<'_>) -> Option<Cited> {
    let pod = case.pod().filter(|_| case.death().is_none())?;
    let told = pod.containers.iter().filter_map(|c| c.status.as_ref()).find_map(|s| {
        match (&s.state, s.restarts) {
            (State::Waiting { reason, .. }, _) if reason == "CrashLoopBackOff" => {
                Some(Status::WaitsForRestart(reason.clone()))
            }
            (_, Some(n)) if n > 0 => Some(Status::Restarted(n)),
            _ => None,
        }
    })?;
    Some(Cited::at(told, &case.pod_place()))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use serde_json::json;

    use crate::verdict::rules::testing::{event, holds, log, near_miss, pod_with};

    const BACK_OFF: &str =
        "Back-off restarting failed container vllm in pod llm-0_serve(651fc813-479c-4184-8be1-cf5e4ec41ec3)";

    #[test]
    fn a_loop_without_a_log_is_unknown() {
        holds(&RULE, &[event("BackOff", BACK_OFF)]);
    }

    #[test]
    fn a_status_that_waits_for_the_next_restart_is_unknown() {
        holds(
            &RULE,
            &[pod_with(0, "", |p| {
                let status = &mut p["status"]["containerStatuses"][0];
                status["lastState"] = json!({});
                status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
            })],
        );
    }

    #[test]
    fn beside_a_log_the_log_speaks() {
        near_miss(
            &RULE,
            "end_not_shown",
            &[event("BackOff", BACK_OFF), log("INFO 06-18 08:01:00 [api_server.py:1977] vLLM API server\n")],
        );
    }
}
