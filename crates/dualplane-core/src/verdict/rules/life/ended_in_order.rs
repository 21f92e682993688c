//! The container ended with exit code 0: the program was done, or stopped when it was asked to.

use super::{Judged, Rule, STATUS, Stage, decided, unmet};
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "ended_in_order",
    stage: Stage::Life,
    classes: &[Class::NotMemory],
    when: "the container's status says exit code 0 or Completed, and nothing in the evidence failed",
    near_miss: "a status without an exit code; exit code 0 with the reason OOMKilled; exit code 0 of a server that is \
    restarted, without its log",
    beats: STATUS,
    source: "wait(2); Kubernetes ContainerStateTerminated",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let end =
        case.death().filter(|d| d.clean()).ok_or_else(|| unmet("no container ended with exit code 0"))?;
    // Whether a job was done or a server stopped by itself, a piece does not tell; the whole object does.
    let restarts = case.subject.restarts.is_some_and(|n| n > 0);
    let server = case.pod().is_some_and(|p| p.whole() && p.phase == "Running" && !p.deleting);
    if server && restarts && !case.facts.has_life() {
        return Err(unmet(
            "the server was restarted and not asked to stop: an API server may exit with code 0 after its engine failed",
        ));
    }
    let summary = "the container ended in order, with exit code 0";
    let supports = vec![Cited::at(Status::Ended(Box::new(end.clone())), &case.pod_place())];
    let mut d = decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, supports);
    // A job that is done ends so; a server does it when it is asked to stop, or behind its dead engine.
    let done = case.pod().is_some_and(|p| p.phase == "Succeeded");
    if !done && !case.facts.has_life() {
        d.confidence = Confidence::Low;
        d.against.push(Cited::plain(Status::CleanAfterFailure));
    }
    Ok(d)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod, pod_with};

    #[test]
    fn exit_code_0_is_an_orderly_end() {
        holds(&RULE, &[pod_with(0, "Completed", |p| p["status"]["phase"] = "Succeeded".into())]);
    }

    /// vLLM's API server ends so when its engine core is dead.
    #[test]
    fn a_server_that_ends_by_itself_does_not_end_in_order() {
        near_miss(&RULE, "end_not_shown", &[pod(0, "Completed")]);
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
