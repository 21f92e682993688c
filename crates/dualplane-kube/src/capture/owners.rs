//! What made the pod, up to the workload, and its last two revisions: what changed before it died?

use dualplane_base::order::Order as _;
use serde_json::{Value, json};

use super::context::Context;
use super::events;
use super::source::{Missing, SourceData, Work};
use crate::api::{ApiError, path};
use crate::find::text;
use crate::target::Kind;

/// Owners of owners. A pod of a LeaderWorkerSet has a StatefulSet between them.
const MAX_DEPTH: usize = 4;
/// Revisions that are compared.
const REVISIONS: usize = 2;

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    if owner(&cx.pod).is_none() {
        return;
    }
    let missing = Missing {
        what: "the workload of the pod and its revisions".into(),
        command: Some(format!(
            "kubectl get pod {} -n {} -o jsonpath='{{.metadata.ownerReferences}}'",
            cx.pod_name, cx.namespace
        )),
        wanted: true,
    };
    work.add("workload", missing, chain(cx));
}

/// The object's controller: kind, name and uid.
fn owner(object: &Value) -> Option<(Kind, String, String)> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|o| o.get("controller").and_then(Value::as_bool) == Some(true))?;
    let kind = Kind::of_owner(&text(owner, "/apiVersion"), &text(owner, "/kind"))?;
    Some((kind, text(owner, "/name"), text(owner, "/uid")))
}

async fn chain(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let mut owners: Vec<Value> = Vec::new();
    let mut next = owner(&cx.pod);
    let mut read = SourceData::default();
    while let Some((kind, name, uid)) = next.filter(|_| owners.len() < MAX_DEPTH) {
        let list = path::namespaced(kind.group_version(), &cx.namespace, kind.resource());
        let found = match cx.api.object(&path::named(&list, &name)).await {
            // Deleted and made again, it is another one, whose template the pod never had.
            Ok(o) if !uid.is_empty() && text(&o, "/metadata/uid") != uid => Err(ApiError::NotFound(format!(
                "{}/{name} was deleted and recreated after it created the pod",
                kind.word()
            ))),
            other => other,
        };
        let object = match found {
            Ok(object) => object,
            // What was found below it stays.
            Err(e) if !owners.is_empty() => {
                let missing =
                    Missing { what: format!("{}/{name}", kind.word()), command: None, wanted: true };
                read.gaps.push(super::source::gap(missing, &e));
                break;
            }
            Err(e) => return Err(e),
        };
        next = owner(&object);
        owners.push(object);
    }
    let changes = async {
        match revisions(cx, &owners).await {
            Ok(revisions) => (revisions, None),
            Err(e) => (None, Some(e)),
        }
    };
    let happened = async {
        let base = path::namespaced("v1", &cx.namespace, "events");
        let mut items = Vec::new();
        for o in &owners {
            // The pod's own events are asked for elsewhere and say it, where they are forbidden.
            if let Ok(list) = events::of(cx, &base, &text(o, "/metadata/name"), &text(o, "/kind")).await {
                items.extend(list.items);
            }
        }
        items
    };
    let ((revisions, failed), happened) = futures_util::future::join(changes, happened).await;
    if let Some(e) = failed {
        let missing = Missing { what: "the revisions of the workload".into(), command: None, wanted: true };
        read.gaps.push(super::source::gap(missing, &e));
    }
    if let Some(revisions) = revisions {
        read.files.push(cx.json("revisions.json", revisions));
    }
    if !happened.is_empty() {
        read.files.push(events::as_list(cx, "workload-events.json", happened));
    }
    if !owners.is_empty() {
        read.files.push(events::as_list(cx, "workload.json", owners));
    }
    read.bytes = read.files.iter().map(|f| f.bytes.len() as u64).sum();
    Ok(read)
}

/// The last revisions of the workload, the pod's own last; `None` where there is but one.
async fn revisions(cx: &Context<'_>, owners: &[Value]) -> Result<Option<Value>, ApiError> {
    let Some(top) = owners.last() else { return Ok(None) };
    let kind = text(top, "/kind");
    let uid = text(top, "/metadata/uid");
    let (group_version, resource) = match kind.as_str() {
        "Deployment" => ("apps/v1", "replicasets"),
        "StatefulSet" | "DaemonSet" | "LeaderWorkerSet" => ("apps/v1", "controllerrevisions"),
        _ => return Ok(None),
    };
    let base = path::namespaced(group_version, &cx.namespace, resource);
    let mine = |o: Value| {
        let owned =
            o.pointer("/metadata/ownerReferences")?.as_array()?.iter().any(|r| text(r, "/uid") == uid);
        owned.then(|| revision(&o)).flatten()
    };
    let mut all = cx.api.list(&base, &[], mine).await?.items;
    all.order_by_key(|r| r.get("revision").and_then(Value::as_i64));
    // A roll-back or a roll-out after the death leaves newer revisions than the pod's.
    let own = own_revision(cx);
    // One that is not there tells nothing of what changed for this pod.
    let Some(i) = all.iter().position(|r| own.as_ref().is_some_and(|o| is_revision(&text(r, "/name"), o)))
    else {
        return Ok(None);
    };
    all.truncate(i + 1);
    let last = all.split_off(all.len().saturating_sub(REVISIONS));
    Ok((last.len() == REVISIONS).then(|| {
        json!({
            "schema": "dualplane.revisions/v1",
            "workload": format!("{}/{}", kind.to_ascii_lowercase(), text(top, "/metadata/name")),
            "namespace": cx.namespace,
            "revisions": last,
        })
    }))
}

/// Name of the ReplicaSet or ControllerRevision that the pod is of.
fn own_revision(cx: &Context<'_>) -> Option<String> {
    let label = text(&cx.pod, "/metadata/labels/controller-revision-hash");
    if !label.is_empty() {
        return Some(label);
    }
    owner(&cx.pod).map(|(_, name, _)| name)
}

/// A StatefulSet's pods carry the whole name of their revision, a DaemonSet's only the hash at its end.
fn is_revision(name: &str, label: &str) -> bool {
    name == label || name.strip_suffix(label).is_some_and(|head| head.ends_with('-'))
}

fn revision(object: &Value) -> Option<Value> {
    let number = match object.get("revision") {
        Some(n) => n.as_i64()?,
        None => object
            .pointer("/metadata/annotations/deployment.kubernetes.io~1revision")?
            .as_str()?
            .parse()
            .ok()?,
    };
    let template = ["/spec/template", "/data/spec/template"].iter().find_map(|p| object.pointer(p))?;
    Some(json!({
        "name": text(object, "/metadata/name"),
        "revision": number,
        "created": text(object, "/metadata/creationTimestamp"),
        "template": template,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn revisions_are_found_by_both_kinds_of_label() {
        assert!(is_revision("web-7d5bb", "web-7d5bb") && is_revision("agent-5b4c6", "5b4c6"));
        assert!(!is_revision("agent-15b4c6", "5b4c6") && !is_revision("agent-aaa", "5b4c6"));
    }

    #[test]
    fn a_kind_of_another_group_is_another_kind() {
        let by = |version: &str| {
            json!({"metadata": {"ownerReferences": [
                {"controller": true, "apiVersion": version, "kind": "StatefulSet", "name": "llm", "uid": "u"}]}})
        };
        assert!(owner(&by("apps/v1")).is_some());
        // OpenKruise: a native StatefulSet of that name is not what made the pod.
        assert!(owner(&by("apps.kruise.io/v1beta1")).is_none());
    }
}
