//! Init containers that were OOM-killed, ran again and completed are told, and explain nothing that came later.

use super::Weighing;
use crate::text::name;
use crate::verdict::case::Case;
use crate::verdict::{Class, Decided, Phase, Step};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "init_kill_overcome",
    adds: "a step for an init container that was OOM-killed, ran again and completed",
    because: "the server started after it: it is worth knowing but explains nothing later",
    source: "Kubernetes init containers",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let mut told = Vec::new();
    let all = case.bundle.pods.iter().flat_map(|p| &p.containers);
    for (c, t) in all.filter_map(|c| Some((c, c.overcame().filter(|t| t.oom_killed())?))) {
        // The same object may be at hand twice.
        if told.contains(&(&c.name, t.finished)) {
            continue;
        }
        told.push((&c.name, t.finished));
        let at = t.finished.map_or(String::new(), |s| format!(" at {}", s.show()));
        let what = format!("init container {} was OOM-killed{at}, ran again and completed", name(&c.name));
        decided.sequence.push(Step {
            class: Class::HostOomKilled,
            phase: Phase::Load,
            what,
            trigger: None,
            follows: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, pod_with, weighs};
    use serde_json::json;

    /// An init container that completed; before that it ended so.
    fn after(reason: &str) -> File {
        let end = |code: i64, reason: &str, at: &str| {
            json!({"terminated": {
                "exitCode": code, "reason": reason, "finishedAt": at, "startedAt": "2026-11-20T09:50:00Z",
                "containerID": format!("containerd://{}", "d".repeat(64))
            }})
        };
        pod_with(1, "Error", |p| {
            p["spec"]["initContainers"] = json!([{"name": "fetch", "image": "fetch:1"}]);
            p["status"]["initContainerStatuses"] = json!([{
                "name": "fetch", "restartCount": 1, "ready": true, "image": "fetch:1",
                "state": end(0, "Completed", "2026-11-20T09:58:00Z"),
                "lastState": end(137, reason, "2026-11-20T09:52:00Z")
            }]);
        })
    }

    #[test]
    fn a_kill_before_the_server_started_is_told() {
        weighs(&RULE, &[after("OOMKilled")]);
    }

    #[test]
    fn another_failure_that_was_overcome_is_not() {
        adds_nothing(&RULE, "exit_code", &[after("Error")]);
    }
}
