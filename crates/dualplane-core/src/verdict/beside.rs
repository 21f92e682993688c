//! The other containers of the pod that failed: what each would be judged as, in a line.
//!
//! A report is of one death. Of a pod whose containers fail each for its own reason the others are named with their
//! verdicts, so that nobody takes one's cause for the other's.

use super::{Class, Confidence, Subject};
use crate::evidence::{Bundle, Container, Judged, Pod, Processes, Termination};
use crate::facts;
use crate::knowledge::Knowledge;

/// Containers that are told of.
const TOLD: usize = 8;

/// Another container of the pod that failed.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Its name.
    pub container: String,
    /// Its class.
    pub class: Class,
    /// How sure.
    pub confidence: Confidence,
    /// One sentence.
    pub summary: String,
    /// How it ended last.
    pub end: Termination,
    /// Its restarts.
    pub restarts: Option<u64>,
}

/// Judges each other container that ended badly, by its own log and what names it.
pub(super) fn others(bundle: &Bundle, subject: &Subject, knowledge: &Knowledge) -> Vec<Beside> {
    let Some(pod) = subject.pod_of(bundle).filter(|_| subject.container.is_some()) else { return Vec::new() };
    pod.containers
        .iter()
        .filter(|c| Some(&c.name) != subject.container.as_ref() && c.overcame().is_none())
        .filter_map(|c| {
            let status = c.status.as_ref()?;
            // The kubelet stops the others of a pod that ends; their own last end tells more than such a stop.
            let end = status.termination().filter(|t| !t.clean() && !t.ended_with(143))?;
            let alone = only(bundle, pod, c, end);
            let facts = facts::extract(&alone, knowledge);
            let verdict = super::judge_one(&alone, &facts, knowledge);
            Some(Beside {
                container: c.name.clone(),
                class: verdict.class,
                confidence: verdict.confidence,
                summary: verdict.summary,
                end: end.clone(),
                restarts: status.restarts,
            })
        })
        .take(TOLD)
        .collect()
}

/// The evidence that is of one container: its logs, the node's, and the objects.
fn only(all: &Bundle, pod: &Pod, container: &Container, end: &Termination) -> Bundle {
    Bundle {
        logs: all.logs.iter().filter(|l| l.kernel || is_of(&l.name, &container.name)).cloned().collect(),
        pods: vec![pod.clone()],
        events: all.events.clone(),
        nodes: all.nodes.clone(),
        judged: Some(Judged {
            container: container.name.clone(),
            container_id: end.container_id.clone(),
            restart: None,
            ended: end.finished,
        }),
        files: all.files.clone(),
        // The listed processes are of the judged container: a line of any pid is not known to be of this one.
        processes: all.processes.as_ref().map(|_| Processes { pids: Vec::new(), whole: true }),
        ..Bundle::default()
    }
}

/// `logs/NAME.previous.log`, `NAME.log`, and the kubelet's `NAME/0.log`.
fn is_of(file: &str, container: &str) -> bool {
    let mut parts = file.rsplit('/');
    let last = parts.next().unwrap_or_default();
    last.strip_prefix(container).is_some_and(|rest| rest.starts_with('.')) || parts.next() == Some(container)
}

#[cfg(test)]
mod tests {
    use super::is_of;
    use crate::verdict::Class;
    use crate::verdict::rules::testing::{event, judged, log, pod_with};
    use serde_json::json;

    #[test]
    fn logs_are_of_the_container_that_names_them() {
        for (file, is) in [
            ("logs/vllm.previous.log", true),
            ("vllm.log", true),
            ("var/log/pods/ns_pod_uid/vllm/0.log", true),
            ("logs/vllm-shipper.previous.log", false),
            ("previous.log", false),
        ] {
            assert_eq!(is_of(file, "vllm"), is, "{file}");
        }
    }

    #[test]
    fn a_neighbour_that_failed_is_told_with_its_own_verdict() {
        let pod = pod_with(1, "Error", |p| {
            p["spec"]["containers"]
                .as_array_mut()
                .unwrap()
                .push(json!({"name": "indexer", "resources": {"limits": {"memory": "1Gi"}}}));
            p["status"]["containerStatuses"].as_array_mut().unwrap().push(json!({
                "name": "indexer", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "containerID": format!("containerd://{}", "c".repeat(64)),
                    "startedAt": "2026-11-20T10:00:00Z", "finishedAt": "2026-11-20T10:20:00Z"}}
            }));
        });
        let v = judged(&[
            pod,
            log("FileNotFoundError: [Errno 2] No such file or directory: '/models/llama/config.json'\n"),
            event("Pulled", "x"),
        ]);
        assert_eq!(v.class, Class::NotMemory);
        let told: Vec<_> = v.others.iter().map(|o| (o.container.as_str(), o.class, o.restarts)).collect();
        assert_eq!(told, [("indexer", Class::HostOomKilled, Some(3))]);
        // One class once: the kill beside it is one step.
        assert_eq!(v.sequence.iter().filter(|s| s.class == Class::HostOomKilled).count(), 1);
    }
}
