//! Pods and containers as the API has them: what was asked for, what the kubelet handed out, who sends requests.

use dualplane_base::device_id::is_gpu;
use serde_json::Value;

use super::assembly::{Assembly, Held, Source};
use super::engine;
use super::link::Link;
use super::model::{ContainerMap, PodMap};
use dualplane_base::Confidence;
use dualplane_base::json::{list, str_at, text_of};

/// Containers of a pod that are looked at.
const MAX_CONTAINERS: usize = 64;

/// Containers that run beside each other: the regular ones, and init containers that stay.
pub(super) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let stays = |c: &&Value| str_at(c, "/restartPolicy") == "Always";
    list(pod, "/spec/containers")
        .iter()
        .chain(list(pod, "/spec/initContainers").iter().filter(stays))
        .take(MAX_CONTAINERS)
}

/// Statuses of all containers.
pub(super) fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    ["/status/containerStatuses", "/status/initContainerStatuses"].iter().flat_map(|l| list(pod, l))
}

/// The status of a container.
pub(super) fn status<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    statuses(pod).find(|s| str_at(s, "/name") == name)
}

/// Whether any container of a pod asks for a GPU, by the device plugin or by a claim.
#[must_use]
pub fn asks_for_gpu(pod: &Value) -> bool {
    !list(pod, "/spec/resourceClaims").is_empty() || containers(pod).any(|c| !limits(c).is_empty())
}

/// GPU resources of a container's limits, with how many.
pub(super) fn limits(container: &Value) -> Vec<(String, String)> {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object);
    let gpus = limits.into_iter().flatten().filter(|(k, _)| is_gpu(k));
    gpus.map(|(k, v)| (k.clone(), text_of(v))).filter(|(_, n)| n != "0").collect()
}

/// Whether a container is one of those that the map is about.
fn matters(container: &Value) -> bool {
    !limits(container).is_empty()
        || !list(container, "/resources/claims").is_empty()
        || engine::of_spec(container).is_some()
}

pub(super) fn read(pod: &Value, services: &[Value]) -> PodMap {
    let all: Vec<&Value> = containers(pod).collect();
    let any = all.iter().any(|c| matters(c));
    let spec = "pod's spec";
    let owner = list(pod, "/metadata/ownerReferences")
        .iter()
        .find(|o| o.get("controller").and_then(Value::as_bool) == Some(true))
        .map(|o| format!("{}/{}", str_at(o, "/kind"), str_at(o, "/name")));
    let node = str_at(pod, "/spec/nodeName");
    PodMap {
        namespace: str_at(pod, "/metadata/namespace").to_owned(),
        name: str_at(pod, "/metadata/name").to_owned(),
        uid: str_at(pod, "/metadata/uid").to_owned(),
        phase: str_at(pod, "/status/phase").to_owned(),
        node: (!node.is_empty()).then(|| Link::new(node, spec, Confidence::High)),
        owner: owner.map(|o| Link::new(&o, "pod's ownerReferences", Confidence::High)),
        services: services.iter().filter_map(|s| service(pod, s)).collect(),
        containers: all.iter().filter(|c| !any || matters(c)).map(|c| container(pod, c)).collect(),
    }
}

fn container(pod: &Value, c: &Value) -> ContainerMap {
    let name = str_at(c, "/name");
    let status = status(pod, name);
    let mut asks: Vec<Link> = limits(c)
        .iter()
        .map(|(resource, n)| Link::new(&format!("{resource}: {n}"), "pod's spec", Confidence::High))
        .collect();
    for claim in list(c, "/resources/claims") {
        let (name, request) = (str_at(claim, "/name"), str_at(claim, "/request"));
        let of = if request.is_empty() { String::new() } else { format!(", request {request}") };
        asks.push(Link::new(&format!("claim {name}{of}"), "pod's spec", Confidence::High));
    }
    // A literal value overrides what the device plugin sets, which is how a container sees cards it was not given.
    for e in list(c, "/env") {
        if ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"].contains(&str_at(e, "/name")) {
            let value = str_at(e, "/value");
            if !value.is_empty() {
                let text = format!("{}={value}", str_at(e, "/name"));
                asks.push(Link::new(&text, "env of the pod's spec", Confidence::Medium));
            }
        }
    }
    let (engine, models) = engine::of_spec(c).map(|s| (s.attributes, s.models)).unwrap_or_default();
    ContainerMap {
        name: name.to_owned(),
        id: status.map(|s| str_at(s, "/containerID").to_owned()).unwrap_or_default(),
        state: status.map(state).unwrap_or_default(),
        image: str_at(c, "/image").to_owned(),
        engine,
        models,
        asks,
        devices: Vec::new(),
    }
}

fn state(status: &Value) -> String {
    let state = status.get("state").and_then(Value::as_object);
    let Some((name, of)) = state.and_then(|s| s.iter().next()) else { return String::new() };
    match str_at(of, "/reason") {
        "" => name.clone(),
        reason => format!("{name} ({reason})"),
    }
}

/// A Service whose selector the pod's labels satisfy, with where it sends requests.
fn service(pod: &Value, service: &Value) -> Option<Link> {
    if str_at(service, "/metadata/namespace") != str_at(pod, "/metadata/namespace") {
        return None;
    }
    let selector = service.pointer("/spec/selector").and_then(Value::as_object).filter(|s| !s.is_empty())?;
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object)?;
    if !selector.iter().all(|(k, v)| labels.get(k) == Some(v)) {
        return None;
    }
    let port = |p: &Value, key: &str| p.get(key).map(text_of).unwrap_or_default();
    let ports: Vec<String> = list(service, "/spec/ports")
        .iter()
        .take(8)
        .map(|p| {
            let (from, to) = (port(p, "port"), port(p, "targetPort"));
            if to.is_empty() || to == from { from } else { format!("{from} → {to}") }
        })
        .collect();
    let text = format!("service/{}:{}", str_at(service, "/metadata/name"), ports.join(", "));
    Some(Link::new(&text, "selector of the Service", Confidence::High))
}

/// Device ids that the kubelet reports for a pod's containers (ResourceHealthStatus).
pub(super) fn allocated(a: &mut Assembly, pod: &Value) {
    let node = str_at(pod, "/spec/nodeName");
    for s in ["/status/containerStatuses", "/status/initContainerStatuses"].iter().flat_map(|l| list(pod, l))
    {
        for resource in list(s, "/allocatedResourcesStatus").iter().take(MAX_CONTAINERS) {
            let name = str_at(resource, "/name");
            if !is_gpu(name) {
                continue;
            }
            for device in list(resource, "/resources").iter().take(256) {
                let raw = str_at(device, "/resourceID");
                if raw.is_empty() {
                    continue;
                }
                let known = a.resolve(node, raw);
                let health = str_at(device, "/health");
                let profile = name.strip_prefix("nvidia.com/mig-").map(|p| p.trim_end_matches(".shared"));
                let held = Held {
                    device: known.clone(),
                    namespace: str_at(pod, "/metadata/namespace").to_owned(),
                    pod: str_at(pod, "/metadata/name").to_owned(),
                    container: str_at(s, "/name").to_owned(),
                    link: Link::new(raw, "allocatedResourcesStatus of the pod", Confidence::High),
                    health: (!health.is_empty()).then(|| health.to_owned()),
                    from: Source::Kubelet,
                };
                a.hold(held, node);
                if let (Some(profile), Some(d)) = (profile, a.device(&known, node)) {
                    d.mig = true;
                    d.attributes.tell("profile", profile, format!("resource {name}"), Confidence::High);
                }
            }
        }
    }
}
