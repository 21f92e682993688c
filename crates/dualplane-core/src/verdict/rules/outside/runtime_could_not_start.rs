//! The status of the dead instance itself says why the runtime could not start it.

use super::{BEATS, Judged, Rule, Stage, decided, unmet};
use crate::facts::Hit;
use crate::knowledge::Mark;
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "runtime_could_not_start",
    stage: Stage::Outside,
    classes: &[Class::NotMemory],
    when: "the message of the container's last termination is a known start failure",
    near_miss: "an event with the same message about an earlier instance",
    beats: BEATS,
    source: "runc, containerd: messages of StartError and ContainerCannotRun",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let death = case
        .death()
        .filter(|d| !d.message.is_empty())
        .ok_or_else(|| unmet("the container's last termination has no message"))?;
    let said =
        |h: &&Hit| h.mark == Mark::Failure && h.event(case.bundle).is_none() && h.text == death.message;
    let hit = case.facts.object_hits.iter().find(said).ok_or_else(|| {
        unmet(
            "the message of the container's last termination is not a known start \
        failure",
        )
    })?;
    let text = format!("{}: {}", death.reason, crate::text::shorten(&hit.text, 240));
    let supports = vec![Cited::of(text, hit)];
    Ok(decided(Class::NotMemory, Phase::Load, Confidence::High, hit.meaning.clone(), supports))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{event, holds, near_miss, pod, pod_with};

    const EXEC: &str = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"vllm\": executable file not found in $PATH: unknown";

    #[test]
    fn its_own_message_is_the_end() {
        let pod = pod_with(128, "StartError", |p| {
            p["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"] = EXEC.into();
        });
        holds(&RULE, &[pod]);
    }

    #[test]
    fn an_event_of_another_instance_is_not() {
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), event("Failed", EXEC)]);
    }
}
