//! What an agent on a node asks for: a pod that died on it, and the events of that pod. No more than it needs. A server that
//! watches asks for the pod, too.

use std::time::Duration;

use serde_json::Value;

use crate::api::{Api, ApiError, Listed, path};

/// One pod, within a time: after a death an answer that comes late is of no use.
///
/// # Errors
/// See [`ApiError`]; [`ApiError::NotFound`] where it is deleted already.
pub async fn pod(api: &Api, namespace: &str, name: &str, within: Duration) -> Result<Value, ApiError> {
    let path = path::named(&path::namespaced("v1", namespace, "pods"), name);
    crate::api::parse(&path, &api.get_within(&path, within).await?)
}

/// No pod has it: too long for what anybody types, and it says who asks.
const NO_POD: &str = "dualplane-agent-looks-whether-it-may-read-pods";

/// Whether the API server answers, takes the credentials and lets pods be read: asks for a pod that is not there.
///
/// # Errors
/// See [`ApiError`].
pub async fn check(api: &Api, within: Duration) -> Result<(), ApiError> {
    let path = path::named(&path::namespaced("v1", api.namespace(), "pods"), NO_POD);
    match api.get_within(&path, within).await {
        Ok(_) | Err(ApiError::NotFound(_)) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Events of a pod, by its UID: those of an earlier pod of that name are of another.
///
/// # Errors
/// See [`ApiError`].
pub async fn events_of(api: &Api, namespace: &str, uid: &str) -> Result<Listed, ApiError> {
    let selector = format!("involvedObject.uid={uid}");
    api.list(&path::namespaced("v1", namespace, "events"), &[("fieldSelector", &selector)], Some).await
}
