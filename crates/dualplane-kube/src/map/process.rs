//! The pod of a process: by the uid and container id that its cgroup names.

use dualplane_base::process::Process;
use serde_json::Value;

use crate::api::{Api, ApiError, path};
use crate::find::{statuses, text};

/// Looks on the node of this host first, then everywhere: hosts and nodes are often, but not always, named alike.
///
/// # Errors
/// See [`ApiError`].
pub async fn find_process(api: &Api, process: &Process, host: &str) -> Result<Option<Value>, ApiError> {
    let base = path::cluster("v1", "pods");
    let on_host = format!("spec.nodeName={host}");
    let queries: [&[(&str, &str)]; 2] = [&[("fieldSelector", on_host.as_str())], &[]];
    for query in queries {
        if !query.is_empty() && host.is_empty() {
            continue;
        }
        let found = api.list(&base, query, |p| is_of(&p, process).then_some(p)).await?;
        if let Some(pod) = found.items.into_iter().next() {
            return Ok(Some(pod));
        }
    }
    Ok(None)
}

fn is_of(pod: &Value, process: &Process) -> bool {
    let by_uid = process.pod_uid.as_deref().is_some_and(|uid| {
        // A static pod's cgroup is named by the hash of its manifest.
        uid == text(pod, "/metadata/uid")
            || uid == text(pod, "/metadata/annotations/kubernetes.io~1config.hash")
    });
    let by_container = || {
        let Some(id) = process.container_id.as_deref() else { return false };
        statuses(pod).any(|s| text(s, "/containerID").ends_with(id))
    };
    by_uid || by_container()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn by_uid_by_hash_by_container() {
        let pod = json!({"metadata": {"uid": "u-1", "annotations": {"kubernetes.io/config.hash": "h"}},
            "status": {"containerStatuses": [{"containerID": "containerd://abc"}]}});
        let of = |uid: Option<&str>, id: Option<&str>| {
            let p = Process {
                pod_uid: uid.map(Into::into),
                container_id: id.map(Into::into),
                ..Process::default()
            };
            is_of(&pod, &p)
        };
        assert!(of(Some("u-1"), None) && of(Some("h"), None) && of(None, Some("abc")));
        assert!(!of(Some("u-2"), None) && !of(None, None));
    }
}
