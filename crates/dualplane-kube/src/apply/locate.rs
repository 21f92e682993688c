//! Which object a change is for: by its name, or from a dead pod up to the workload that makes pods like it.

use dualplane_core::change::{ObjectRef, Role, Whole};
use serde_json::Value;

use crate::api::{Api, ApiError, path};
use crate::find::text;
use crate::target::{Kind, Named};

/// Owners of owners. A worker of a LeaderWorkerSet has two StatefulSets and the leader's pod above it.
const MAX_DEPTH: usize = 6;

/// An object, and how it was found.
#[derive(Debug, Clone)]
pub struct Located {
    /// Which.
    pub object: ObjectRef,
    /// Which of a group's templates the pod was made from.
    pub role: Option<Role>,
    /// The pod is gone; the object was found by the pod's name.
    pub by_name: bool,
}

/// The object that the command line names.
#[must_use]
pub fn named(target: &Named, namespace: &str) -> ObjectRef {
    ObjectRef {
        api_version: target.kind.group_version().to_owned(),
        kind: target.kind.kind().to_owned(),
        resource: target.kind.resource().to_owned(),
        subresource: None,
        namespace: Some(namespace.to_owned()),
        name: target.name.clone(),
        uid: String::new(),
    }
}

/// A ConfigMap from which a server takes its settings.
#[must_use]
pub fn config_map(name: &str, namespace: &str) -> ObjectRef {
    ObjectRef {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        resource: "configmaps".into(),
        subresource: None,
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        uid: String::new(),
    }
}

/// The object that a patch names; the server tells its resource.
///
/// # Errors
/// See [`ApiError`]; [`ApiError::NotFound`] where the server does not know the kind.
pub async fn whole(api: &Api, of: &Whole, namespace: &str) -> Result<ObjectRef, ApiError> {
    let resources = api.object(&path::root(&of.api_version)).await?;
    let all = resources.get("resources").and_then(Value::as_array).into_iter().flatten();
    let found = all.into_iter().find(|r| text(r, "/kind") == of.kind && !text(r, "/name").contains('/'));
    let Some(found) = found else {
        return Err(ApiError::NotFound(format!(
            "the API server does not serve {} in \
        {}",
            of.kind, of.api_version
        )));
    };
    let namespaced = found.get("namespaced").and_then(Value::as_bool).unwrap_or(true);
    Ok(ObjectRef {
        api_version: of.api_version.clone(),
        kind: of.kind.clone(),
        resource: text(found, "/name"),
        subresource: None,
        namespace: namespaced.then(|| namespace.to_owned()),
        name: of.name.clone(),
        uid: String::new(),
    })
}

/// Whether running pods can be given other resources (Kubernetes 1.33 and later).
///
/// # Errors
/// See [`ApiError`].
pub async fn resize_served(api: &Api) -> Result<bool, ApiError> {
    let resources = api.object(&path::root("v1")).await?;
    let mut all = resources.get("resources").and_then(Value::as_array).into_iter().flatten();
    Ok(all.any(|r| text(r, "/name") == "pods/resize"))
}

/// From a pod to what makes pods like it; the pod itself where nothing does.
///
/// # Errors
/// See [`ApiError`]; [`ApiError::NotFound`] where the pod is gone and nothing of its name is there either.
pub async fn of_pod(api: &Api, namespace: &str, pod: &str) -> Result<Located, ApiError> {
    match get(api, namespace, Kind::Pod, pod).await {
        Ok(object) => climb(api, namespace, Kind::Pod, object).await,
        Err(ApiError::NotFound(why)) => {
            for (kind, name) in makers(pod) {
                match get(api, namespace, kind, name).await {
                    Ok(object) => {
                        let located = climb(api, namespace, kind, object).await?;
                        return Ok(Located { by_name: true, ..located });
                    }
                    Err(ApiError::NotFound(_)) => {}
                    Err(e) => return Err(e),
                }
            }
            Err(ApiError::NotFound(why))
        }
        Err(e) => Err(e),
    }
}

async fn get(api: &Api, namespace: &str, kind: Kind, name: &str) -> Result<Value, ApiError> {
    let list = path::namespaced(kind.group_version(), namespace, kind.resource());
    api.object(&path::named(&list, name)).await
}

/// What may have made a pod of this name.
fn makers(pod: &str) -> Vec<(Kind, &str)> {
    let Some((head, tail)) = pod.rsplit_once('-') else { return Vec::new() };
    let mut out = Vec::new();
    if tail.bytes().all(|b| b.is_ascii_digit()) {
        out.push((Kind::StatefulSet, head));
    }
    out.extend([(Kind::ReplicaSet, head), (Kind::DaemonSet, head), (Kind::Job, head)]);
    // Old ReplicaSets are deleted after some revisions.
    if let Some((name, _)) = head.rsplit_once('-') {
        out.push((Kind::Deployment, name));
    }
    out
}

async fn climb(api: &Api, namespace: &str, kind: Kind, object: Value) -> Result<Located, ApiError> {
    let role = match text(&object, "/metadata/labels/leaderworkerset.sigs.k8s.io~1worker-index").as_str() {
        "" => None,
        "0" => Some(Role::Leader),
        _ => Some(Role::Worker),
    };
    let (mut kind, mut object) = (kind, object);
    for _ in 0..MAX_DEPTH {
        let Some((owner, name)) = known_owner(&object) else { break };
        object = get(api, namespace, owner, &name).await?;
        kind = owner;
    }
    let target = Named { kind, name: text(&object, "/metadata/name") };
    Ok(Located { object: named(&target, namespace), role, by_name: false })
}

/// The controller, where it is of a kind whose template is known here. Another kind is named as a manager later.
pub(crate) fn known_owner(object: &Value) -> Option<(Kind, String)> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|o| o.get("controller").and_then(Value::as_bool) == Some(true))?;
    Some((Kind::of_owner(&text(owner, "/apiVersion"), &text(owner, "/kind"))?, text(owner, "/name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pods_name_tells_what_may_have_made_it() {
        let of = |pod| makers(pod).into_iter().map(|(k, n)| format!("{}/{n}", k.word())).collect::<Vec<_>>();
        assert_eq!(
            of("llm-6d9f7c5b84-x2lqm"),
            ["replicaset/llm-6d9f7c5b84", "daemonset/llm-6d9f7c5b84", "job/llm-6d9f7c5b84", "deployment/llm"]
        );
        assert_eq!(of("llm-0").first().map(String::as_str), Some("statefulset/llm"));
        assert!(of("llm").is_empty());
    }
}
