//! The container ended with exit code 0: the program was done, or stopped when it was asked to.

use super::{Judged, Rule, STATUS, Stage, decided, unmet};
use crate::verdict::case::Case;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "ended_in_order",
    stage: Stage::Life,
    classes: &[Class::NotMemory],
    when: "the container's status says exit code 0 or Completed, and nothing in the evidence failed",
    near_miss: "a status without an exit code; exit code 0 with the reason OOMKilled",
    beats: STATUS,
    source: "wait(2); Kubernetes ContainerStateTerminated",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let end =
        case.death().filter(|d| d.clean()).ok_or_else(|| unmet("no container ended with exit code 0"))?;
    let summary = "the container ended in order, with exit code 0";
    let supports = vec![Cited::at(end.told(", "), &case.pod_place())];
    let mut d = decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, supports);
    // A job that is done ends so; a server does it when it is asked to stop, or behind its dead engine.
    let done = case.pod().is_some_and(|p| p.phase == "Succeeded");
    if !done && !case.facts.has_life() {
        d.confidence = Confidence::Low;
        d.against.push(Cited::plain(
            "an API server may also exit with code 0 after its engine failed; its log would show that",
        ));
    }
    Ok(d)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod, pod_with};

    #[test]
    fn exit_code_0_is_an_orderly_end() {
        holds(&RULE, &[pod(0, "Completed")]);
    }

    #[test]
    fn without_a_code_or_reason_it_is_not_known_how_it_ended() {
        let pod = pod_with(0, "", |p| {
            let last = &mut p["status"]["containerStatuses"][0]["lastState"]["terminated"];
            last.as_object_mut().unwrap().remove("exitCode");
        });
        near_miss(&RULE, "exit_code", &[pod]);
    }
}
