//! A pod: its spec and its status as one.

use dualplane_base::json::{list, str_at, text_of};
use serde_json::Value;

use super::container::{MAX_CONTAINERS, container, container_status};
use super::fields::{conditions, memory_at, opt_at, time_at};
use super::mounts::mounts;
use crate::evidence::kube_model::{Container, ContainerKind, Extent, Pod, Volume};

/// The pod of a specification, wherever in an object that stands.
#[must_use]
pub fn of_spec(spec: &Value) -> Pod {
    pod(&serde_json::json!({ "spec": spec }), "")
}

pub(super) fn pod(v: &Value, file: &str) -> Pod {
    let mut containers = Vec::new();
    for (spec, status, kind) in [
        ("/spec/initContainers", "/status/initContainerStatuses", ContainerKind::Init),
        ("/spec/containers", "/status/containerStatuses", ContainerKind::Main),
        ("/spec/ephemeralContainers", "/status/ephemeralContainerStatuses", ContainerKind::Ephemeral),
    ] {
        let statuses = list(v, status);
        let statuses = statuses.get(..MAX_CONTAINERS).unwrap_or(statuses);
        for c in list(v, spec).iter().take(MAX_CONTAINERS) {
            let files = mounts(c, list(v, "/spec/volumes"));
            containers.push(Container { files, ..container(c, kind, statuses) });
        }
        // A status without its spec (cut-down pastes) still tells how it died.
        for s in statuses {
            let name = str_at(s, "/name");
            if !containers.iter().any(|c| c.name == name) {
                containers.push(Container {
                    name: name.to_owned(),
                    kind,
                    image: str_at(s, "/image").to_owned(),
                    status: Some(container_status(s)),
                    ..Container::default()
                });
            }
        }
    }
    Pod {
        file: file.to_owned(),
        name: str_at(v, "/metadata/name").to_owned(),
        namespace: str_at(v, "/metadata/namespace").to_owned(),
        uid: str_at(v, "/metadata/uid").to_owned(),
        config_hash: v
            .pointer("/metadata/annotations")
            .and_then(|a| a.get("kubernetes.io/config.hash"))
            .and_then(Value::as_str)
            .map(str::to_owned),
        node: opt_at(v, "/spec/nodeName"),
        phase: str_at(v, "/status/phase").to_owned(),
        reason: opt_at(v, "/status/reason"),
        message: opt_at(v, "/status/message"),
        conditions: conditions(v),
        edited: v.pointer("/metadata/generation").and_then(Value::as_u64).is_some_and(|n| n > 1),
        deleting: v.pointer("/metadata/deletionTimestamp").is_some_and(|d| !d.is_null()),
        deletion: time_at(v, "/metadata/deletionTimestamp")
            .map(|at| (at, v.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64))),
        memory_limit: memory_at(v, "/spec/resources/limits/memory"),
        grace_seconds: v.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64),
        owner: list(v, "/metadata/ownerReferences")
            .first()
            .map(|o| (str_at(o, "/kind").to_owned(), str_at(o, "/name").to_owned())),
        containers,
        opens_devices: opens_devices(v),
        volumes: list(v, "/spec/volumes").iter().map(volume).collect(),
        selector: v
            .pointer("/spec/nodeSelector")
            .and_then(Value::as_object)
            .map(|s| s.iter().map(|(k, v)| (k.clone(), text_of(v))).collect())
            .unwrap_or_default(),
        managed: Vec::new(),
        labels: v
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .map(|l| l.iter().map(|(k, v)| (k.clone(), text_of(v))).collect())
            .unwrap_or_default(),
        extent: if list(v, "/spec/containers").is_empty() { Extent::Piece } else { Extent::Whole },
    }
}

/// Ways to a device that `resources` do not tell of.
fn opens_devices(v: &Value) -> bool {
    let privileged = |c: &Value| c.pointer("/securityContext/privileged") == Some(&Value::Bool(true));
    let machine = |v: &Value| {
        let path = str_at(v, "/hostPath/path");
        path == "/" || path == "/dev" || path.starts_with("/dev/") && path != "/dev/shm"
    };
    !list(v, "/spec/resourceClaims").is_empty()
        || ["/spec/containers", "/spec/initContainers"].iter().any(|at| list(v, at).iter().any(privileged))
        || list(v, "/spec/volumes").iter().any(machine)
}

fn volume(v: &Value) -> Volume {
    Volume {
        name: str_at(v, "/name").to_owned(),
        memory_medium: str_at(v, "/emptyDir/medium").starts_with("Memory"),
        size_limit: memory_at(v, "/emptyDir/sizeLimit"),
    }
}
