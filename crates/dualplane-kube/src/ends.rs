//! The last of the ends that a pod's status tells of, and whether somebody asked for it.
//!
//! An end is one with an error, one by the kernel, and of a container that should run for ever any.

use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;

use crate::find::text;

/// How a process ends when it is told to: well, or by 128 + SIGINT, 128 + SIGTERM.
const TOLD: [i64; 3] = [0, 130, 143];

/// How a container ended, or a pod without any container that did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The container; empty where the pod failed and none of its containers tells why.
    pub container: String,
    /// The container runtime's name of the instance, else the pod's reason.
    pub instance: String,
    /// When; `None` where nobody saw it, as of a node that was lost.
    pub at: Option<Timestamp>,
    code: Option<i64>,
    by_kernel: bool,
}

/// The last end of a pod's containers, those that run before it among them.
#[must_use]
pub fn last(pod: &Value) -> Option<End> {
    let always = text(pod, "/spec/restartPolicy") == "Always";
    let of_list = |key: &str, for_ever: bool| {
        let all = pod.pointer(&format!("/status/{key}")).and_then(Value::as_array).into_iter().flatten();
        all.flat_map(|s| ["/state/terminated", "/lastState/terminated"].map(|at| (s, s.pointer(at))))
            .filter_map(move |(s, ended)| of(text(s, "/name"), ended.filter(|e| e.is_object())?, for_ever))
    };
    let ended = of_list("containerStatuses", always).chain(of_list("initContainerStatuses", false));
    // Of two at one time the first: the pod's own containers stand before those that prepare it.
    let last = ended.reduce(|a, b| if b.at > a.at { b } else { a });
    last.or_else(|| failed(pod))
}

fn of(container: String, ended: &Value, for_ever: bool) -> Option<End> {
    let code = ended.get("exitCode").and_then(Value::as_i64);
    // The main process may end well after the kernel took its worker.
    let by_kernel = text(ended, "/reason") == "OOMKilled";
    let at = text(ended, "/finishedAt").parse().ok();
    (for_ever || code != Some(0) || by_kernel).then(|| End {
        container,
        instance: text(ended, "/containerID"),
        at,
        code,
        by_kernel,
    })
}

/// Evicted, refused by its node, or lost with it.
fn failed(pod: &Value) -> Option<End> {
    if text(pod, "/status/phase") != "Failed" {
        return None;
    }
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let told = conditions.filter(|c| text(c, "/type") == "DisruptionTarget");
    let at = told.filter_map(|c| text(c, "/lastTransitionTime").parse().ok()).max();
    let instance = text(pod, "/status/reason");
    Some(End { container: String::new(), instance, at, code: None, by_kernel: false })
}

impl End {
    /// Whether the pod was deleted and ended of that. A kill by the kernel nobody asked for.
    #[must_use]
    pub fn was_asked_for(&self, pod: &Value) -> bool {
        let Ok(deadline) = text(pod, "/metadata/deletionTimestamp").parse::<Timestamp>() else {
            return false;
        };
        let grace = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
        let asked = deadline.checked_sub(grace.clamp(0, 365 * 86_400).seconds()).unwrap_or(deadline);
        let Some(at) = self.at else { return true };
        // Both are told in seconds. Within the same one, only what a signal to end does can be an answer to it.
        let told = self.code.is_some_and(|c| TOLD.contains(&c));
        !self.by_kernel && (at > asked || told && at == asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended(code: i64, reason: &str, at: &str) -> Value {
        json!({"exitCode": code, "reason": reason, "finishedAt": format!("2026-11-21T{at}Z"), "containerID": format!("containerd://{at}")})
    }

    fn pod(state: Value, last: Value) -> Value {
        json!({"status": {"phase": "Running", "containerStatuses": [
            {"name": "vllm", "state": {"terminated": state}, "lastState": {"terminated": last}},
            {"name": "proxy", "state": {"running": {}}}]}})
    }

    #[test]
    fn the_last_end_is_told_and_a_good_one_is_none() {
        let of = |state, before| last(&pod(state, before)).map(|e| e.instance);
        let (early, late) = (ended(1, "Error", "10:00:00"), ended(137, "OOMKilled", "10:05:00"));
        assert_eq!(of(late.clone(), early.clone()).as_deref(), Some("containerd://10:05:00"));
        assert_eq!(of(Value::Null, early.clone()).as_deref(), Some("containerd://10:00:00"));
        // A worker was killed, and the server ended well.
        let child = ended(0, "OOMKilled", "10:06:00");
        assert_eq!(of(child, late).as_deref(), Some("containerd://10:06:00"));
        let mut well = pod(ended(0, "Completed", "10:07:00"), Value::Null);
        assert_eq!(last(&well), None);
        well["spec"] = json!({"restartPolicy": "Always"});
        assert_eq!(last(&well).map(|e| e.container).as_deref(), Some("vllm"), "a server does not complete");
        let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
        assert_eq!(last(&evicted).map(|e| (e.instance, e.at)), Some(("Evicted".to_owned(), None)));
        assert_eq!(last(&json!({})), None);
    }

    #[test]
    fn what_ends_because_its_pod_is_deleted_was_asked_for() {
        let deleted = |code, reason, at| {
            let mut pod = pod(ended(code, reason, at), Value::Null);
            // Asked for at 10:00:00.
            pod["metadata"] =
                json!({"deletionTimestamp": "2026-11-21T10:00:30Z", "deletionGracePeriodSeconds": 30});
            last(&pod).unwrap().was_asked_for(&pod)
        };
        assert!(deleted(143, "Error", "10:00:04") && deleted(137, "Error", "10:00:30"));
        assert!(deleted(143, "Error", "10:00:00"));
        assert!(!deleted(137, "OOMKilled", "10:00:04"), "by the kernel");
        assert!(!deleted(1, "Error", "09:59:59") && !deleted(1, "Error", "10:00:00"), "died before");
        let lives = pod(ended(143, "Error", "10:00:04"), Value::Null);
        assert!(!last(&lives).unwrap().was_asked_for(&lives), "a probe did it");
    }
}
