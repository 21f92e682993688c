//! A probe or a hook killed earlier runs of the container again and again: the last kill is most likely one more.
//!
//! In a crash loop the kubelet soon holds events back (25 of a pod at once, then one in five minutes), so that the last kill
//! may have none.

use super::{BEATS, Judged, Rule, Stage, decided, unmet};
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence};

/// Once may have been something else.
const TIMES: u64 = 2;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "probe_loop",
    stage: Stage::Failure,
    classes: &[Class::NotMemory],
    when: "the container ended with SIGKILL without OOMKilled, and earlier runs were killed at least \
    twice for a failed probe or postStart hook",
    near_miss: "a single probe kill of an earlier run",
    beats: BEATS,
    source: "client-go tools/record: EventSourceObjectSpamFilter; kubelet probe events",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let death = case
        .death()
        .filter(|d| d.ended_with(137) && !d.oom_killed())
        .ok_or_else(|| unmet("the container did not end with SIGKILL without OOMKilled"))?;
    let restarts = case.subject.restarts.ok_or_else(|| unmet("the number of restarts is unknown"))?;
    let killing = case
        .bundle
        .events
        .iter()
        .find(|e| {
            e.reason == "Killing"
                && (is_probe(&e.message) || is_hook(&e.message))
                && e.count >= TIMES
                && case.subject.is_of(e, case.bundle)
        })
        .ok_or_else(|| unmet("no event reports repeated kills of this container for a probe or hook"))?;
    let place = Place { file: killing.file.clone(), line: killing.line };
    let supports = vec![
        Cited::at(
            Status::ProbeKills { message: killing.message.clone(), count: killing.count, restarts },
            &place,
        ),
        Cited::at(Status::EndedOtherwise(Box::new(death.clone())), &case.pod_place()),
    ];
    let what = if is_hook(&killing.message) { "postStart hook" } else { "probe" };
    let summary = format!("the kubelet keeps killing the container because its {what} fails");
    let mut d = decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, supports);
    d.against.push(Cited::plain(Status::NoEventNearEnd));
    Ok(d)
}

fn is_probe(message: &str) -> bool {
    message.contains("failed liveness probe") || message.contains("failed startup probe")
}

/// All that the kubelet says of the kill; its Warning is held back as other events are.
fn is_hook(message: &str) -> bool {
    message == "FailedPostStartHook"
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{earlier_event, holds, near_miss, pod};

    const KILLING: &str = "Container vllm failed liveness probe, will be restarted";

    #[test]
    fn repeated_probe_kills_explain_one_more() {
        holds(&RULE, &[pod(137, "Error"), earlier_event("Killing", KILLING, 7)]);
    }

    #[test]
    fn so_do_kills_for_a_hook() {
        holds(&RULE, &[pod(137, "Error"), earlier_event("Killing", "FailedPostStartHook", 6)]);
    }

    #[test]
    fn one_does_not() {
        near_miss(&RULE, "killed", &[pod(137, "Error"), earlier_event("Killing", KILLING, 1)]);
    }
}
