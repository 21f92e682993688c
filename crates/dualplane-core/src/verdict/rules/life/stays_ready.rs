//! The pod's own status says that its server runs, is ready, and never ended.

use super::{Judged, Rule, STATUS, Stage, decided, unmet};
use crate::evidence::{ContainerKind, Role, State};
use crate::facts::LogSummary;
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "stays_ready",
    stage: Stage::Life,
    classes: &[Class::NotMemory],
    when: "the pod's status says that its containers run, are ready and were never restarted",
    near_miss: "a container that runs after a restart, where the status does not say how it ended before",
    beats: STATUS,
    source: "Kubernetes ContainerStatus: state.running, ready (the readiness probe), restartCount",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let pod = case.pod().ok_or_else(|| unmet("there is no pod object"))?;
    if case.death().is_some() {
        return Err(unmet("a container of the pod ended"));
    }
    let ended = |l: &LogSummary| l.role == Role::Previous && (l.first.is_some() || l.phase != Phase::Unknown);
    if !pod.whole() && case.facts.logs.iter().any(ended) {
        return Err(unmet("a piece of the status stands beside the log of an instance that ended"));
    }
    let mut told = 0;
    for c in pod.containers.iter().filter(|c| c.kind == ContainerKind::Main) {
        let status = c.status.as_ref().ok_or_else(|| unmet("a container has no status"))?;
        if !matches!(status.state, State::Running { .. }) || status.ready != Some(true) {
            return Err(unmet("a container does not run or is not ready"));
        }
        match status.restarts {
            Some(0) => {}
            Some(_) => {
                return Err(unmet(
                    "a container was restarted, and the status does not say how it ended before",
                ));
            }
            None => return Err(unmet("the evidence does not say whether a container was restarted")),
        }
        told += 1;
    }
    if told == 0 {
        return Err(unmet("the pod object has no container with a status"));
    }
    let supports = vec![Cited::at(Status::Ready, &case.pod_place())];
    let summary = "the pod runs, is ready and was never restarted; nothing failed";
    // A row or a piece may leave a container out.
    let confidence = if pod.whole() { Confidence::High } else { Confidence::Medium };
    Ok(decided(Class::NotMemory, case.end_phase(), confidence, summary, supports))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, near_miss, pod_with};

    fn running(change: impl FnOnce(&mut Value)) -> File {
        pod_with(0, "", |p| {
            let status = &mut p["status"]["containerStatuses"][0];
            status["lastState"] = json!({});
            status["ready"] = true.into();
            status["restartCount"] = 0.into();
            change(status);
        })
    }

    #[test]
    fn ready_since_its_start() {
        holds(&RULE, &[running(|_| ())]);
    }

    #[test]
    fn restarted_it_ended_before() {
        near_miss(&RULE, "restart_loop", &[running(|s| s["restartCount"] = 3.into())]);
    }

    #[test]
    fn not_ready_it_does_not_serve() {
        near_miss(&RULE, "end_not_shown", &[running(|s| s["ready"] = false.into())]);
    }
}
