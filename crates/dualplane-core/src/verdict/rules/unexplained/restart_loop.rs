//! The kubelet restarts something again and again, and nothing at hand says what it died of.

use super::{Beats, Judged, LIFE, NOTHING, Rule, Stage, decided, unmet};
use crate::facts::Hit;
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "restart_loop",
    stage: Stage::Unexplained,
    classes: &[Class::Unknown],
    when: "an event says \"Back-off restarting\", and there is no log",
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
    let hit = case
        .facts
        .object_hits
        .iter()
        .find(back_off)
        .ok_or_else(|| unmet("no event reports a restart loop"))?;
    let supports = vec![Cited::of(hit.text.clone(), hit)];
    let summary = "a container keeps restarting, and the evidence does not show how it ends";
    Ok(decided(Class::Unknown, case.end_phase(), Confidence::Low, summary, supports))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{event, holds, log, near_miss};

    const BACK_OFF: &str =
        "Back-off restarting failed container vllm in pod llm-0_serve(651fc813-479c-4184-8be1-cf5e4ec41ec3)";

    #[test]
    fn a_loop_without_a_log_is_unknown() {
        holds(&RULE, &[event("BackOff", BACK_OFF)]);
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
