//! Asks what a patch would do, and sends it: the only caller of [`Api::patch`].

use dualplane_core::change::{Edit, Inverse, ObjectRef, Policy, inverse, merge_patch, still, strategic};
use serde_json::{Value, json};

use super::MANAGER;
use crate::api::{Api, ApiError, PatchType, path};
use crate::find::text;

/// How often a patch is sent again after the object changed in what does not concern it: the status of a pod that
/// crashes changes every few seconds.
const TRIES: usize = 6;

/// What is wanted of an object.
#[derive(Debug, Clone)]
pub enum ChangeRequest {
    /// A patch in the form of the object.
    Patch(Value),
    /// The way back from these edits.
    Revert(Vec<Edit>, Policy),
}

/// What a change would do, as the server says.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Which object, with its uid.
    pub object: ObjectRef,
    /// The object as it is.
    pub live: Value,
    /// The object as it would be.
    pub after: Value,
    /// The patch, without the version of the object.
    pub patch: Value,
    /// Its type.
    pub patch_type: PatchType,
    /// For a way back: what stands in it.
    pub inverse: Inverse,
}

/// Why a change was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApplyError {
    /// The server refused it.
    #[error("{0}")]
    Refused(ApiError),
    /// The object is no longer what was shown.
    #[error("the object was changed since it was shown")]
    Moved,
    /// Whether it was made is not known.
    #[error("no response arrived, and the object does not show whether the change was made: {0}")]
    Unknown(ApiError),
}

fn base(object: &ObjectRef) -> String {
    let list = match &object.namespace {
        Some(ns) => path::namespaced(&object.api_version, ns, &object.resource),
        None => path::cluster(&object.api_version, &object.resource),
    };
    path::named(&list, &object.name)
}

fn target(object: &ObjectRef, dry_run: bool) -> String {
    let below = object.subresource.as_ref().map_or(String::new(), |s| format!("/{}", path::segment(s)));
    // Strict: a field that the server does not know would be dropped in silence.
    let mut query = vec![("fieldManager", MANAGER), ("fieldValidation", "Strict")];
    if dry_run {
        query.push(("dryRun", "All"));
    }
    path::with_query(&format!("{}{below}", base(object)), &query)
}

/// The object as it is now.
///
/// # Errors
/// See [`ApiError`].
pub async fn current(api: &Api, object: &ObjectRef) -> Result<Value, ApiError> {
    api.object(&base(object)).await
}

/// Kinds with strategic merge are those of Kubernetes itself.
fn patch_type(object: &ObjectRef) -> PatchType {
    let group = object.api_version.rsplit_once('/').map_or("", |g| g.0);
    let own = ["", "apps", "batch", "autoscaling", "policy"].contains(&group)
        || group.ends_with(".k8s.io") && !group.contains("x-k8s.io");
    if own { PatchType::Strategic } else { PatchType::Merge }
}

fn with_version(patch: &Value, kind: PatchType, live: &Value) -> Value {
    let version = text(live, "/metadata/resourceVersion");
    let mut patch = patch.clone();
    match (kind, patch.as_array_mut()) {
        (PatchType::Json, Some(operations)) => {
            let test = |field: &str| json!({"op": "test", "path": format!("/metadata/{field}"), "value": text(live, &format!("/metadata/{field}"))});
            operations.insert(0, test("resourceVersion"));
            operations.insert(1, test("uid"));
        }
        _ => {
            if let Some(map) = patch.as_object_mut() {
                let metadata = map.entry("metadata").or_insert_with(|| json!({}));
                if let Some(metadata) = metadata.as_object_mut() {
                    metadata.insert("resourceVersion".into(), version.into());
                }
            }
        }
    }
    patch
}

/// Computes the patch against the live object and lets the server say what it would do.
///
/// # Errors
/// See [`ApiError`].
pub async fn preview(api: &Api, object: &ObjectRef, ask: &ChangeRequest) -> Result<Preview, ApiError> {
    let mut last = None;
    for _ in 0..TRIES {
        let live = current(api, object).await?;
        let object = ObjectRef { uid: text(&live, "/metadata/uid"), ..object.clone() };
        let (patch, kind, inverse) = match ask {
            ChangeRequest::Patch(patch) if patch_type(&object) == PatchType::Strategic => {
                (patch.clone(), PatchType::Strategic, Inverse::default())
            }
            ChangeRequest::Patch(patch) => {
                (merge_patch(&live, &strategic(&live, patch)), PatchType::Merge, Inverse::default())
            }
            ChangeRequest::Revert(edits, policy) => {
                let way = inverse(edits, &live, *policy);
                (Value::Array(way.operations.clone()), PatchType::Json, way)
            }
        };
        let mut preview = Preview { object, after: live.clone(), live, patch, patch_type: kind, inverse };
        // An empty patch would still be a request.
        let nothing = preview.patch.as_array().is_some_and(Vec::is_empty)
            || preview.patch.as_object().is_some_and(serde_json::Map::is_empty);
        if nothing {
            return Ok(preview);
        }
        let sent = with_version(&preview.patch, kind, &preview.live);
        match api.patch(&target(&preview.object, true), kind, &sent).await {
            Ok(after) => {
                preview.after = after;
                return Ok(preview);
            }
            Err(e) if is_conflict(&e, kind) => {
                let now = current(api, &preview.object).await?;
                if text(&now, "/metadata/resourceVersion") == text(&preview.live, "/metadata/resourceVersion")
                {
                    return Err(e);
                }
                last = Some(e);
            }
            Err(e) => return Err(e),
        }
    }
    Err(last.unwrap_or_else(|| ApiError::TimedOut(object.name.clone())))
}

/// A failed test of a JSON patch is answered with 422.
fn is_conflict(fault: &ApiError, kind: PatchType) -> bool {
    matches!(fault, ApiError::Status { status: 409, .. })
        || kind == PatchType::Json && matches!(fault, ApiError::Status { status: 422, .. })
}

/// Whether the server may have made the change although no answer says so.
fn is_open(fault: &ApiError) -> bool {
    matches!(
        fault,
        ApiError::TimedOut(_)
            | ApiError::Interrupted { .. }
            | ApiError::InvalidResponse { .. }
            | ApiError::TooLarge { .. }
            | ApiError::Unreachable { .. }
            | ApiError::Status { status: 500.., .. }
    )
}

/// Makes the change that was shown; the object after it.
///
/// # Errors
/// See [`ApplyError`].
pub async fn carry_out(api: &Api, shown: &Preview) -> Result<Value, ApplyError> {
    let mut live = shown.live.clone();
    for _ in 0..TRIES {
        let sent = with_version(&shown.patch, shown.patch_type, &live);
        let fault = match api.patch(&target(&shown.object, false), shown.patch_type, &sent).await {
            Ok(after) => return Ok(after),
            Err(fault) => fault,
        };
        if is_open(&fault) {
            return outcome(api, shown, fault).await;
        }
        if !is_conflict(&fault, shown.patch_type) {
            return Err(ApplyError::Refused(fault));
        }
        let now = current(api, &shown.object).await.map_err(ApplyError::Refused)?;
        // Only a status, or a count of roll-outs, moved: what was shown still holds.
        if !still(&shown.live, &now) {
            return Err(ApplyError::Moved);
        }
        if text(&now, "/metadata/resourceVersion") == text(&live, "/metadata/resourceVersion") {
            return Err(ApplyError::Refused(fault));
        }
        live = now;
    }
    Err(ApplyError::Moved)
}

/// Looks what became of a change whose answer did not arrive.
async fn outcome(api: &Api, shown: &Preview, fault: ApiError) -> Result<Value, ApplyError> {
    match current(api, &shown.object).await {
        Ok(now) if still(&shown.after, &now) => Ok(now),
        // A server that answers errors, or was not reached, has nothing under way any more.
        Ok(now)
            if still(&shown.live, &now)
                && matches!(fault, ApiError::Status { .. } | ApiError::Unreachable { .. }) =>
        {
            Err(ApplyError::Refused(fault))
        }
        _ => Err(ApplyError::Unknown(fault)),
    }
}

/// Disruption budgets of a namespace, where they can be seen.
pub async fn budgets(api: &Api, namespace: &str) -> Vec<Value> {
    let base = path::namespaced("policy/v1", namespace, "poddisruptionbudgets");
    api.list(&base, &[], Some).await.map(|l| l.items).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str) -> ObjectRef {
        ObjectRef {
            api_version: api_version.into(),
            kind: "Pod".into(),
            resource: "pods".into(),
            subresource: Some("resize".into()),
            namespace: Some("n".into()),
            name: "p".into(),
            uid: "u".into(),
        }
    }

    #[test]
    fn requests_name_the_manager_and_are_strict() {
        assert_eq!(
            target(&object("v1"), true),
            "/api/v1/namespaces/n/pods/p/resize?fieldManager=dualplane&fieldValidation=Strict&dryRun=All"
        );
        assert!(!target(&object("v1"), false).contains("dryRun"));
    }

    #[test]
    fn custom_resources_take_merge_patches() {
        for (version, want) in [
            ("v1", PatchType::Strategic),
            ("apps/v1", PatchType::Strategic),
            ("networking.k8s.io/v1", PatchType::Strategic),
            ("leaderworkerset.x-k8s.io/v1", PatchType::Merge),
            ("serving.kserve.io/v1beta1", PatchType::Merge),
        ] {
            assert_eq!(patch_type(&object(version)), want, "{version}");
        }
    }

    #[test]
    fn every_patch_carries_the_version_that_was_shown() {
        let live = json!({"metadata": {"resourceVersion": "7", "uid": "u"}});
        let merge = with_version(&json!({"metadata": {"labels": {"a": "b"}}}), PatchType::Strategic, &live);
        assert_eq!(merge, json!({"metadata": {"labels": {"a": "b"}, "resourceVersion": "7"}}));
        let back = with_version(&json!([{"op": "remove", "path": "/x"}]), PatchType::Json, &live);
        assert_eq!(back[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
        assert_eq!(back[1]["path"], "/metadata/uid");
        assert_eq!(back[2]["op"], "remove");
    }
}
