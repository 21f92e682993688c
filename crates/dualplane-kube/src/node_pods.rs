//! What an agent on a node asks for: the pods of its node, one pod, a pod's events. No more than it needs.

use std::time::Duration;

use serde_json::Value;

use crate::api::{Api, Fault, Listed, path};

/// The pods that are bound to a node. `keep` sees each first and may shrink or drop it.
///
/// # Errors
/// See [`Fault`].
pub async fn pods_of_node(
    api: &Api,
    node: &str,
    keep: impl FnMut(Value) -> Option<Value>,
) -> Result<Listed, Fault> {
    let selector = format!("spec.nodeName={node}");
    // From the server's cache: a node asks for its own pods at each start, and a second of age does not matter.
    let query = [("fieldSelector", selector.as_str()), ("resourceVersion", "0")];
    api.list(&path::cluster("v1", "pods"), &query, keep).await
}

/// One pod, within a time: after a death an answer that comes late is of no use.
///
/// # Errors
/// See [`Fault`]; [`Fault::NotFound`] where it is deleted already.
pub async fn pod(api: &Api, namespace: &str, name: &str, within: Duration) -> Result<Value, Fault> {
    let path = path::named(&path::namespaced("v1", namespace, "pods"), name);
    crate::api::parse(&path, &api.get_within(&path, within).await?)
}

/// Events of a pod, by its UID: those of an earlier pod of that name are of another.
///
/// # Errors
/// See [`Fault`].
pub async fn events_of(api: &Api, namespace: &str, uid: &str) -> Result<Listed, Fault> {
    let selector = format!("involvedObject.uid={uid}");
    api.list(&path::namespaced("v1", namespace, "events"), &[("fieldSelector", &selector)], Some).await
}
