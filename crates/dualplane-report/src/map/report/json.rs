//! `dualplane.map/v1`. Documented in `docs/map.md` and `docs/map.schema.json`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::map::{Attributes, ContainerMap, Device, Link, Map, PodMap, Process};
use dualplane_core::evidence::Gap;

/// Schema id.
pub const MAP: &str = "dualplane.map/v1";

#[derive(Serialize)]
struct MapV1<'a> {
    schema: &'static str,
    asked: &'a str,
    process: Option<ProcessV1<'a>>,
    pods: Vec<PodV1<'a>>,
    devices: Vec<DeviceV1<'a>>,
    nodes: Vec<NodeV1<'a>>,
    contradictions: Vec<ContradictionV1<'a>>,
    missing: &'a [Gap],
}

#[derive(Serialize)]
struct ProcessV1<'a> {
    pid: u32,
    name: &'a str,
    cgroup: &'a str,
    cgroup_version: u8,
    cgroup_driver: Option<&'static str>,
    runtime: Option<&'static str>,
    qos: Option<&'static str>,
    pod_uid: Option<&'a str>,
    container_id: Option<&'a str>,
}

#[derive(Serialize)]
struct PodV1<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    phase: &'a str,
    node: Option<&'a Link>,
    owner: Option<&'a Link>,
    requests: &'a [Link],
    containers: Vec<ContainerV1<'a>>,
}

#[derive(Serialize)]
struct ContainerV1<'a> {
    name: &'a str,
    id: &'a str,
    state: &'a str,
    image: &'a str,
    models: Vec<ModelV1<'a>>,
    engine: LinksByName<'a>,
    asks: &'a [Link],
    devices: &'a [String],
}

#[derive(Serialize)]
struct ModelV1<'a> {
    id: &'a Link,
    root: Option<&'a str>,
    max_len: Option<u64>,
}

#[derive(Serialize)]
struct DeviceV1<'a> {
    id: &'a str,
    kind: &'static str,
    node: Option<&'a str>,
    shared: Option<&'a str>,
    properties: LinksByName<'a>,
    holders: Vec<HolderV1<'a>>,
}

#[derive(Serialize)]
struct HolderV1<'a> {
    namespace: &'a str,
    pod: &'a str,
    container: &'a str,
    health: Option<&'a str>,
    told: &'a [Link],
}

#[derive(Serialize)]
struct NodeV1<'a> {
    name: &'a str,
    properties: LinksByName<'a>,
}

#[derive(Serialize)]
struct ContradictionV1<'a> {
    what: &'a str,
    told: &'a [Link],
    command: Option<&'a str>,
}

/// Properties by their names in the form of keys, each with all who told it, the surest first.
type LinksByName<'a> = BTreeMap<String, &'a [Link]>;

fn told(a: &Attributes) -> LinksByName<'_> {
    let key = |name: &str| name.to_ascii_lowercase().replace(' ', "_");
    a.iter().map(|a| (key(a.name), a.links.as_slice())).collect()
}

fn of(map: &Map) -> MapV1<'_> {
    MapV1 {
        schema: MAP,
        asked: &map.asked,
        process: map.process.as_ref().map(process),
        pods: map.pods.iter().map(pod).collect(),
        devices: map.devices.iter().map(device).collect(),
        nodes: map.nodes.iter().map(|n| NodeV1 { name: &n.name, properties: told(&n.attributes) }).collect(),
        contradictions: map
            .contradictions
            .iter()
            .map(|c| ContradictionV1 { what: &c.what, told: &c.told, command: c.settle.as_deref() })
            .collect(),
        missing: &map.gaps,
    }
}

fn process(p: &Process) -> ProcessV1<'_> {
    ProcessV1 {
        pid: p.pid,
        name: &p.comm,
        cgroup: &p.path,
        cgroup_version: p.version,
        cgroup_driver: p.driver,
        runtime: p.runtime,
        qos: p.qos,
        pod_uid: p.pod_uid.as_deref(),
        container_id: p.container_id.as_deref(),
    }
}

fn pod(p: &PodMap) -> PodV1<'_> {
    PodV1 {
        namespace: &p.namespace,
        name: &p.name,
        uid: &p.uid,
        phase: &p.phase,
        node: p.node.as_ref(),
        owner: p.owner.as_ref(),
        requests: &p.services,
        containers: p.containers.iter().map(container).collect(),
    }
}

fn container(c: &ContainerMap) -> ContainerV1<'_> {
    let models = c.models.iter().map(|m| ModelV1 { id: &m.id, root: m.root.as_deref(), max_len: m.max_len });
    ContainerV1 {
        name: &c.name,
        id: &c.id,
        state: &c.state,
        image: &c.image,
        models: models.collect(),
        engine: told(&c.engine),
        asks: &c.asks,
        devices: &c.devices,
    }
}

fn device(d: &Device) -> DeviceV1<'_> {
    let holders = d.holders.iter().map(|h| HolderV1 {
        namespace: &h.namespace,
        pod: &h.pod,
        container: &h.container,
        health: h.health.as_deref(),
        told: &h.links,
    });
    DeviceV1 {
        id: &d.id,
        kind: if d.mig { "mig" } else { "gpu" },
        node: d.node.as_deref(),
        shared: d.shared.as_deref(),
        properties: told(&d.attributes),
        holders: holders.collect(),
    }
}

/// JSON with controls and overrides of direction as `\uXXXX`.
///
/// # Errors
/// Not on any map: the structures hold nothing that JSON cannot.
pub fn json(map: &Map) -> Result<String, serde_json::Error> {
    dualplane_base::json::pretty(&of(map))
}

/// The same as YAML.
///
/// # Errors
/// As [`json`].
pub fn yaml(map: &Map) -> Result<String, serde_json::Error> {
    Ok(dualplane_base::yaml::yaml(&serde_json::to_value(of(map))?))
}
