//! The kubelet was asked to stop the container.

use super::{BEATS, Judged, Rule, Stage, decided, fits_a_stop, unmet};
use crate::facts::Hit;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "container_stopped",
    stage: Stage::Outside,
    classes: &[Class::NotMemory],
    when: "an event says that the kubelet stops this container, and its exit code matches a stop (137, 143)",
    near_miss: "a reported stop without an end; a crash after it",
    beats: BEATS,
    source: "kubelet pkg/kubelet/kuberuntime: \"Stopping container\"",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let stopping = |h: &&Hit| h.text.starts_with("Stopping container") && case.of_subject(h);
    let hit = case
        .facts
        .object_hits
        .iter()
        .find(stopping)
        .ok_or_else(|| unmet("no event says that the kubelet stopped the container"))?;
    if !fits_a_stop(case) {
        return Err(unmet("the exit code does not match a stop (137, 143)"));
    }
    if case.death().is_none() && !case.survived() {
        return Err(unmet("it is unknown how the container ended"));
    }
    let supports = vec![Cited::of(hit.text.clone(), hit)];
    let summary =
        "the kubelet was asked to stop the container; after the grace period, it sends SIGKILL (137)";
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, supports))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{event, holds, near_miss, pod};

    #[test]
    fn a_stop_explains_a_kill() {
        holds(&RULE, &[pod(137, "Error"), event("Killing", "Stopping container vllm")]);
    }

    #[test]
    fn a_stop_explains_no_crash() {
        near_miss(&RULE, "segfault", &[pod(139, "Error"), event("Killing", "Stopping container vllm")]);
    }
}
