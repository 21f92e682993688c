//! What a roll-out before the death changed, as far as it bears on the class.

use super::Weighing;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::causes::bearing_changes;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Decided};

/// Changes of one roll-out that are told.
const TOLD: usize = 4;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "rolled_out",
    adds: "fields changed by the last rollout that can cause a failure of this class",
    because: "recent changes are the first thing people ask about",
    source: "Kubernetes ReplicaSets and ControllerRevisions",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    for (r, changes) in bearing_changes(case.bundle, decided.class, &case.subject) {
        let place = Place { file: r.file.clone(), line: None };
        for c in changes.into_iter().take(TOLD) {
            let proof = Status::Changed { revision: r.to, change: c.clone() };
            decided.supports.push(Cited::at(proof, &place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, pod, weighs};
    use serde_json::json;

    fn revisions(before: &str, directory: &str) -> File {
        let one = |revision: i64, memory: &str, directory: &str| {
            json!({"revision": revision, "created": "2026-11-20T09:00:00Z", "template": {"spec": {"containers": [{
                "name": "vllm", "image": "vllm/vllm-openai:v0.11.0", "workingDir": directory,
                "resources": {"limits": {"memory": memory}}
            }]}}})
        };
        let text = json!({
            "schema": "dualplane.revisions/v1", "workload": "deployment/llm",
            "revisions": [one(7, before, "/a"), one(8, "64Gi", directory)]
        });
        file("revisions.json", &text.to_string())
    }

    #[test]
    fn a_lower_limit_bears_on_a_kill() {
        weighs(&RULE, &[pod(137, "OOMKilled"), revisions("96Gi", "/a")]);
    }

    #[test]
    fn a_working_directory_does_not() {
        adds_nothing(&RULE, "oom_killed_status", &[pod(137, "OOMKilled"), revisions("64Gi", "/b")]);
    }
}
