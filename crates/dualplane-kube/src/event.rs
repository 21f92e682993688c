//! The agent's Event on a pod: besides `apply/` the only thing that is written to a cluster.
//!
//! One Event stands for one container and class: a further death counts it up. Its name follows from what it is about, and
//! it notes the last incident that it counts, so that the same one is not counted twice, also not after a crash.

use dualplane_core::evidence::VERDICT_REASON;
use serde_json::{Value, json};

use crate::api::{Api, ApiError, PatchType, path};
use crate::find::text;

/// Who reports.
pub const CONTROLLER: &str = "dualplane.dev/agent";
/// Annotation with the last incident that is counted.
pub const INCIDENT: &str = "dualplane.dev/incident";
/// Label with the class.
pub const CLASS: &str = "dualplane.dev/class";
/// Bytes of a message: the bound of `events.k8s.io`.
const MAX_MESSAGE: usize = 1024;
/// How often it is tried again after somebody else changed the Event meanwhile.
const TRIES: usize = 4;

/// What is said of which container.
#[derive(Debug, Clone, Copy)]
pub struct IncidentEvent<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its pod.
    pub pod: &'a str,
    /// UID of the pod.
    pub uid: &'a str,
    /// Its name.
    pub container: &'a str,
    /// Node of the pod, and who reports.
    pub node: &'a str,
    /// Name of the Event: the same for what is to be counted as one.
    pub name: &'a str,
    /// Id of the incident. Ids sort by time.
    pub incident: &'a str,
    /// Class of the verdict.
    pub class: &'a str,
    /// When it happened, RFC 3339.
    pub at: &'a str,
    /// One line, masked; cut at 1,024 bytes.
    pub message: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// A new Event.
    Created,
    /// An Event that was there counts so many now.
    Updated(u64),
    /// This incident, or a later one, was counted already.
    Unchanged,
}

/// Makes an Event, or counts up the one that is there.
///
/// # Errors
/// See [`ApiError`]. [`ApiError::NotFound`]: the namespace is gone.
pub async fn publish(api: &Api, notice: &IncidentEvent<'_>) -> Result<Published, ApiError> {
    let list = path::namespaced("v1", notice.namespace, "events");
    let own = path::named(&list, notice.name);
    let mut last = ApiError::NotFound(own.clone());
    for _ in 0..TRIES {
        let sent = match api.object(&own).await {
            Ok(there)
                if text(&there, "/metadata/annotations/dualplane.dev~1incident").as_str()
                    >= notice.incident =>
            {
                return Ok(Published::Unchanged);
            }
            Ok(there) => {
                let count = there.get("count").and_then(Value::as_u64).unwrap_or(1).saturating_add(1);
                api.patch(&own, PatchType::Merge, &again(&there, notice, count))
                    .await
                    .map(|_| Published::Updated(count))
            }
            Err(ApiError::NotFound(_)) => api.post(&list, &first(notice)).await.map(|_| Published::Created),
            Err(e) => return Err(e),
        };
        match sent {
            // It was made, changed or removed by its age between the two requests.
            Err(e @ (ApiError::Status { status: 409, .. } | ApiError::NotFound(_))) => last = e,
            done => return done,
        }
    }
    Err(last)
}

fn first(n: &IncidentEvent<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": n.name,
            "namespace": n.namespace,
            "labels": {CLASS: n.class},
            "annotations": {INCIDENT: n.incident},
        },
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": n.namespace, "name": n.pod, "uid": n.uid,
            "fieldPath": format!("spec.containers{{{}}}", n.container),
        },
        "related": {"apiVersion": "v1", "kind": "Node", "name": n.node},
        "type": "Warning",
        "reason": VERDICT_REASON,
        "action": "Judged",
        "message": within(n.message, MAX_MESSAGE),
        "source": {"component": "dualplane-agent", "host": n.node},
        "reportingComponent": CONTROLLER,
        "reportingInstance": n.node,
        "firstTimestamp": n.at,
        "lastTimestamp": n.at,
        "count": 1,
    })
}

fn again(there: &Value, n: &IncidentEvent<'_>, count: u64) -> Value {
    json!({
        // Without it two agents, or one that was restarted, could count the same incident.
        "metadata": {
            "resourceVersion": text(there, "/metadata/resourceVersion"),
            "annotations": {INCIDENT: n.incident},
        },
        "count": count,
        "lastTimestamp": n.at,
        "message": within(n.message, MAX_MESSAGE),
    })
}

fn within(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_between_characters() {
        let long = "é".repeat(600);
        assert_eq!(within(&long, MAX_MESSAGE).len(), 1024);
        assert_eq!(within(&format!("a{long}"), MAX_MESSAGE).len(), 1023);
        assert_eq!(within("short", MAX_MESSAGE), "short");
    }
}
