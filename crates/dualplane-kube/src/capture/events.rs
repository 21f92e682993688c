//! Events of the pod and of its node. Events live an hour by default, so they are perishable too.

use dualplane_core::evidence::{Gap, RawFile};
use serde_json::{Value, json};

use super::context::Context;
use super::source::{Missing, SourceData, Work};
use crate::api::{ApiError, Listed, path};

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    let missing = Missing {
        what: "events of the pod".into(),
        command: Some(format!(
            "kubectl get events -n {} --field-selector involvedObject.name={} -o json",
            cx.namespace, cx.pod_name
        )),
        wanted: true,
    };
    work.add("events", missing, of_pod(cx));
    if !cx.node.is_empty() {
        let missing = Missing {
            what: format!("events of node {}", cx.node),
            command: Some(format!(
                "kubectl get events -A --field-selector involvedObject.kind=Node,involvedObject.name={} -o json",
                cx.node
            )),
            wanted: true,
        };
        work.add("node events", missing, of_node(cx));
    }
}

async fn of_pod(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let list = of(cx, &path::namespaced("v1", &cx.namespace, "events"), &cx.pod_name, "Pod").await?;
    Ok(file(cx, "events.json", list))
}

async fn of_node(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    // Node events are of no namespace, which the API keeps in `default`.
    let list = of(cx, &path::namespaced("v1", "default", "events"), &cx.node, "Node").await?;
    Ok(file(cx, "node-events.json", list))
}

/// Events of one object.
pub(super) async fn of(cx: &Context<'_>, base: &str, name: &str, kind: &str) -> Result<Listed, ApiError> {
    let selector = format!("involvedObject.kind={kind},involvedObject.name={name}");
    cx.api.list(base, &[("fieldSelector", selector.as_str())], Some).await
}

/// A file of a list; none where there is nothing in it.
pub(super) fn file(cx: &Context<'_>, name: &str, list: Listed) -> SourceData {
    if list.items.is_empty() {
        return SourceData::default();
    }
    let mut read = SourceData::one(as_list(cx, name, list.items));
    if list.cut {
        read.gaps.push(Gap {
            what: format!("the rest of {name}"),
            why: "the list is too long or changed too often while it was read".into(),
            command: None,
        });
    }
    read
}

/// Objects as one `List`.
pub(super) fn as_list(cx: &Context<'_>, name: &str, items: Vec<Value>) -> RawFile {
    cx.json(name, json!({"apiVersion": "v1", "kind": "List", "items": items}))
}
