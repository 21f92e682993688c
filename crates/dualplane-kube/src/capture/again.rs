//! A container that restarts while its pod is read: the log that the pod's object promises is gone by then, or another
//! instance's. In a crash loop that is one look in some dozens, so it is looked again, once, before the reader is told to.

use serde_json::Value;

use super::Captured;
use crate::api::{Api, path};
use crate::find::{statuses, text};

/// Logs that the pod's object promised and that are not among the files.
pub(super) fn missing_logs(captured: &Captured) -> usize {
    let logs = captured.sources.iter().filter_map(|s| s.name.strip_prefix("logs/")?.strip_suffix(')'));
    logs.filter_map(|name| name.split_once(" ("))
        .filter(|(container, which)| {
            let file = format!("logs/{container}.{which}.log");
            !captured.files.iter().any(|f| f.name == file)
        })
        .count()
}

/// The pod as it is now, where a container of it was started or has ended since.
pub(super) async fn moved(api: &Api, pod: &Value) -> Option<Value> {
    let list = path::namespaced("v1", &text(pod, "/metadata/namespace"), "pods");
    let now = api.object(&path::named(&list, &text(pod, "/metadata/name"))).await.ok()?;
    let instances = |pod: &Value| -> Vec<[String; 4]> {
        let of =
            ["/name", "/restartCount", "/state/terminated/containerID", "/lastState/terminated/containerID"];
        statuses(pod).map(|s| of.map(|at| s.pointer(at).map(Value::to_string).unwrap_or_default())).collect()
    };
    let same_pod = text(&now, "/metadata/uid") == text(pod, "/metadata/uid");
    (same_pod && instances(&now) != instances(pod)).then_some(now)
}
