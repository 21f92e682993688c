//! The Events that agents left on pods, read: what of a pod the kernel killed while it lived on, or what is left of one.

use dualplane_core::evidence::VERDICT_REASON;
use serde_json::Value;

use crate::api::{Api, path};

/// What `keep` takes of the Events of agents on pods, in a namespace or in all. Who may not list them is told nothing.
pub(crate) async fn list(
    api: &Api,
    namespace: Option<&str>,
    keep: impl FnMut(Value) -> Option<Value>,
) -> Vec<Value> {
    let base = match namespace {
        Some(namespace) => path::namespaced("v1", namespace, "events"),
        None => path::cluster("v1", "events"),
    };
    let selector = format!("reason={VERDICT_REASON},involvedObject.kind=Pod");
    let listed = api.list(&base, &[("fieldSelector", selector.as_str())], keep).await;
    listed.unwrap_or_default().items
}
