//! Small evidence for the tests of rules, in the forms that Kubernetes, engines and the kernel print.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{Rule, Ruling};
use crate::evidence::{Bundle, RawFile};
use crate::facts::extract;
use crate::knowledge::Knowledge;
use crate::verdict::weighing::Weighing;
use crate::verdict::{Verdict, judge};

/// A file of evidence: name and text.
pub(in crate::verdict) type File = (&'static str, String);

const UID: &str = "651fc813-479c-4184-8be1-cf5e4ec41ec3";

/// The pod, its server's last end with this exit code and reason.
pub(in crate::verdict) fn pod(code: i64, reason: &str) -> File {
    pod_with(code, reason, |_| {})
}

/// The same, changed.
pub(in crate::verdict) fn pod_with(code: i64, reason: &str, change: impl FnOnce(&mut Value)) -> File {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "llm-0", "namespace": "serve", "uid": UID},
        "spec": {"nodeName": "gpu-1", "containers": [{
            "name": "vllm", "image": "vllm/vllm-openai:v0.11.0",
            "resources": {"limits": {"memory": "64Gi", "nvidia.com/gpu": "1"}}
        }]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "vllm", "restartCount": 8, "ready": false, "image": "vllm/vllm-openai:v0.11.0",
            "containerID": format!("containerd://{}", "a".repeat(64)),
            "state": {"running": {"startedAt": "2026-11-20T10:30:10Z"}},
            "lastState": {"terminated": {
                "exitCode": code, "reason": reason, "containerID": format!("containerd://{}", "b".repeat(64)),
                "startedAt": "2026-11-20T10:00:00Z", "finishedAt": "2026-11-20T10:30:00Z"
            }}
        }]}
    });
    change(&mut pod);
    ("pod.json", pod.to_string())
}

/// The pod with another image.
pub(in crate::verdict) fn image(code: i64, image: &str) -> File {
    pod_with(code, "Error", |p| {
        p["spec"]["containers"][0]["image"] = image.into();
        p["status"]["containerStatuses"][0]["image"] = image.into();
    })
}

/// An event of the pod at its end.
pub(in crate::verdict) fn event(reason: &str, message: &str) -> File {
    of_pod(reason, message, "2026-11-20T10:30:00Z", 1)
}

/// An event of an earlier run.
pub(in crate::verdict) fn earlier_event(reason: &str, message: &str, count: u64) -> File {
    of_pod(reason, message, "2026-11-20T09:00:00Z", count)
}

fn of_pod(reason: &str, message: &str, last: &str, count: u64) -> File {
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "llm-0.17e0", "namespace": "serve"},
        "involvedObject": {"kind": "Pod", "name": "llm-0", "namespace": "serve", "uid": UID},
        "reason": reason, "message": message, "type": "Normal", "count": count,
        "firstTimestamp": last, "lastTimestamp": last
    });
    ("events.json", json!({"apiVersion": "v1", "kind": "List", "items": [event]}).to_string())
}

/// The dead instance's log.
pub(in crate::verdict) fn log(text: &str) -> File {
    ("previous.log", text.to_owned())
}

/// The log of a V0 engine whose KV cache was full, and which went on.
pub(in crate::verdict) fn preempted() -> File {
    log(
        "WARNING 11-20 10:29:11 [scheduler.py:1057] Sequence group cmpl-7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect the end-to-end performance.\n",
    )
}

/// The node's kernel log.
pub(in crate::verdict) fn kernel(text: &str) -> File {
    ("kernel.log", text.to_owned())
}

/// A file by name.
pub(in crate::verdict) fn file(name: &'static str, text: &str) -> File {
    (name, text.to_owned())
}

/// What is judged of these files.
pub(in crate::verdict) fn judged(files: &[File]) -> Verdict {
    static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();
    let knowledge = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    let files = files.iter().map(|(n, t)| RawFile::new(*n, t.clone())).collect();
    let bundle = Bundle::from_files(files);
    judge(&bundle, &extract(&bundle, knowledge), knowledge)
}

/// The rule decides, for a class that it names.
#[track_caller]
pub(in crate::verdict) fn holds(rule: &Rule, files: &[File]) {
    let v = judged(files);
    assert_eq!(v.decided_by, rule.id, "{:#?}", v.trace);
    assert!(rule.classes.contains(&v.class), "{} decides for {}", rule.id, v.class);
}

/// The rule does not decide; this one does.
#[track_caller]
pub(in crate::verdict) fn near_miss(rule: &Rule, instead: &str, files: &[File]) {
    let v = judged(files);
    assert_eq!(v.decided_by, instead, "{:#?}", v.trace);
    let ruled = v.trace.iter().find(|r| r.rule == rule.id).unwrap();
    match &ruled.ruling {
        Ruling::Held => panic!("{} decides", rule.id),
        Ruling::NotMet(why) => assert!(!why.is_empty()),
        Ruling::LostTo(winner) => assert_eq!(*winner, instead),
    }
}

/// The weighing rule adds to the verdict.
#[track_caller]
pub(in crate::verdict) fn weighs(rule: &Weighing, files: &[File]) {
    let v = judged(files);
    assert!(v.weighed.contains(&rule.id), "{} by {}: {:?}", v.class, v.decided_by, v.weighed);
}

/// The weighing rule adds nothing, though this rule decides.
#[track_caller]
pub(in crate::verdict) fn adds_nothing(rule: &Weighing, decided_by: &str, files: &[File]) {
    let v = judged(files);
    assert_eq!(v.decided_by, decided_by, "{:#?}", v.trace);
    assert!(!v.weighed.contains(&rule.id), "{:?}", v.weighed);
}
