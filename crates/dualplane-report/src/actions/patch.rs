//! Patches as values, written as YAML only at the end: whatever a name or a value holds, the patch stays what was meant.

use serde_json::{Map, Value, json};

use super::{Context, names};
use dualplane_base::units::Bytes;
use dualplane_core::evidence::ContainerKind;

/// A strategic merge patch of the dead container with these fields. An init container is in a list of its own: in the
/// other one its name would be a new container.
pub(super) fn container_patch(cx: &Context<'_>, fields: Value) -> Value {
    pod_patch(cx, fields, Value::Null)
}

/// The same, with fields of the pod beside the container's.
pub(super) fn pod_patch(cx: &Context<'_>, fields: Value, of_pod: Value) -> Value {
    let list = if cx.verdict.subject.container_kind == ContainerKind::Init {
        "initContainers"
    } else {
        "containers"
    };
    let mut container = Map::new();
    container.insert("name".into(), names(cx).container.into());
    extend(&mut container, fields);
    let mut pod = Map::new();
    pod.insert(list.into(), json!([container]));
    extend(&mut pod, of_pod);
    json!({ "spec": { "template": { "spec": pod } } })
}

fn extend(map: &mut Map<String, Value>, fields: Value) {
    if let Value::Object(fields) = fields {
        map.extend(fields);
    }
}

/// An amount as a manifest has it: `445Gi`, or bytes as a number.
pub(super) fn quantity(bytes: Bytes) -> Value {
    let text = bytes.k8s();
    text.parse::<u64>().map_or_else(|_| text.into(), Value::from)
}
