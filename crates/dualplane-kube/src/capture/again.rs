//! A container that restarts while its pod is read: the log that the pod's object promises is gone by then, or another
//! instance's. In a crash loop that is one look in some dozens, so it is looked again, once, before the reader is told to.

use serde_json::Value;

use super::{Captured, State};
use crate::api::{Api, path};
use crate::find::{statuses, text};

/// Logs that the pod's object promised and that are not among the files; those that are forbidden stay so.
pub(super) fn missing_logs(captured: &Captured) -> usize {
    let allowed = captured.sources.iter().filter(|s| s.state != State::Forbidden);
    let logs = allowed.filter_map(|s| s.name.strip_prefix("logs/")?.strip_suffix(')'));
    logs.filter_map(|name| name.split_once(" ("))
        .filter(|(container, which)| {
            let file = format!("logs/{container}.{which}.log");
            !captured.files.iter().any(|f| f.name == file)
        })
        .count()
}

/// The pod as it is now, if it still is the same one: its logs are asked for by name and must fit its state.
pub(super) async fn as_it_is(api: &Api, pod: &Value) -> Option<Value> {
    let list = path::namespaced("v1", &text(pod, "/metadata/namespace"), "pods");
    let now = api.object(&path::named(&list, &text(pod, "/metadata/name"))).await.ok()?;
    (text(&now, "/metadata/uid") == text(pod, "/metadata/uid")).then_some(now)
}

/// The pod as it is now, where a container of it was started or has ended since.
pub(super) async fn moved(api: &Api, pod: &Value) -> Option<Value> {
    let instances = |pod: &Value| -> Vec<[String; 4]> {
        let of =
            ["/name", "/restartCount", "/state/terminated/containerID", "/lastState/terminated/containerID"];
        statuses(pod).map(|s| of.map(|at| s.pointer(at).map(Value::to_string).unwrap_or_default())).collect()
    };
    as_it_is(api, pod).await.filter(|now| instances(now) != instances(pod))
}
