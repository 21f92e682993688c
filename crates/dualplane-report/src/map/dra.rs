//! Dynamic resource allocation: claims name devices by driver, pool and name; slices tell what these are.
//!
//! resource.k8s.io v1 (1.34), v1beta2 (1.33) and v1beta1 (1.32) differ here only in `basic`, which v1beta1 puts around a
//! device's attributes. Attribute names are those of NVIDIA's driver (gpu.nvidia.com); others tell what they share.

use std::collections::HashMap;

use serde_json::Value;

use super::assembly::{Assembly, Held, OfNode, Source};
use super::link::Link;
use dualplane_base::Confidence;
use dualplane_base::json::{list, str_at, text_of};
use dualplane_base::order::Order as _;
use dualplane_base::units::parse_k8s_memory;
use dualplane_core::evidence::Gap;

/// Devices of one slice; the API allows 128.
const MAX_IN_SLICE: usize = 256;
/// Results of one claim; the API allows 32.
const MAX_RESULTS: usize = 128;

/// Claims and devices by their names.
#[derive(Debug, Default)]
pub(super) struct Index<'a> {
    /// Driver, pool and device, to the id.
    devices: HashMap<(String, String, String), String>,
    /// Namespace and name, to the claim.
    claims: HashMap<(&'a str, &'a str), &'a Value>,
}

/// Reads the slices, so that claims can be understood.
pub(super) fn index<'a>(a: &mut Assembly, slices: &[Value], claims: &'a [Value]) -> Index<'a> {
    let mut index = Index::default();
    for slice in slices {
        let (driver, pool) = (str_at(slice, "/spec/driver"), str_at(slice, "/spec/pool/name"));
        let source = format!("ResourceSlice {}", str_at(slice, "/metadata/name"));
        for device in list(slice, "/spec/devices").iter().take(MAX_IN_SLICE) {
            let per_device = str_at(device, "/nodeName");
            let node = if per_device.is_empty() { str_at(slice, "/spec/nodeName") } else { per_device };
            let name = str_at(device, "/name");
            let uuid = attribute(device, driver, "uuid");
            // Network cards and the like are published in the same way.
            if uuid.is_none() && !driver.contains("gpu") {
                continue;
            }
            let own = format!("{driver}/{pool}/{name}");
            let id = uuid.unwrap_or_else(|| own.clone());
            describe(a, device, &id, (driver, node, &source));
            a.local.insert((node.to_owned(), own), id.clone());
            index.devices.insert((driver.to_owned(), pool.to_owned(), name.to_owned()), id);
        }
    }
    for claim in claims {
        index.claims.insert((str_at(claim, "/metadata/namespace"), str_at(claim, "/metadata/name")), claim);
    }
    index
}

/// An attribute by its short name, or by the name that its driver qualifies.
fn attribute(device: &Value, driver: &str, name: &str) -> Option<String> {
    let attributes = device.get("attributes").or_else(|| device.pointer("/basic/attributes"))?;
    let value = attributes.get(name).or_else(|| attributes.get(format!("{driver}/{name}")))?;
    // One of string, version, int and bool.
    value.as_object()?.values().next().map(text_of).filter(|t| !t.is_empty())
}

fn describe(a: &mut Assembly, device: &Value, id: &str, (driver, node, source): (&str, &str, &str)) {
    let get = |name: &str| attribute(device, driver, name);
    for (name, what) in [("driverVersion", "driver"), ("cudaDriverVersion", "CUDA")] {
        if let Some(value) = get(name) {
            let link = Link::new(&value, source, Confidence::High);
            a.of_nodes.push(OfNode { node: node.to_owned(), name: what, link });
        }
    }
    let Some(d) = a.device(id, node) else { return };
    d.mig |= get("type").as_deref() == Some("mig");
    for (name, what) in [
        ("productName", "card"),
        ("profile", "profile"),
        ("parentUUID", "parent"),
        ("index", "index"),
        ("pcieBusID", "PCI address"),
    ] {
        d.attributes.tell(what, &get(name).unwrap_or_default(), source, Confidence::High);
    }
    let capacity = device.get("capacity").or_else(|| device.pointer("/basic/capacity"));
    let memory = capacity.and_then(|c| c.get("memory").or_else(|| c.get(format!("{driver}/memory"))));
    let memory = memory.map(|m| m.get("value").map_or_else(|| text_of(m), text_of));
    if let Some(bytes) = memory.and_then(|m| parse_k8s_memory(&m)) {
        d.attributes.tell("memory", &bytes.to_string(), source, Confidence::High);
    }
}

/// What a pod's claims got, for each container that uses them.
pub(super) fn allocated(a: &mut Assembly, pod: &Value, index: &Index<'_>) {
    let namespace = str_at(pod, "/metadata/namespace");
    for c in super::pods::containers(pod) {
        for used in list(c, "/resources/claims") {
            let Some(name) = claim_name(pod, str_at(used, "/name")) else { continue };
            let request = str_at(used, "/request");
            let fits = |r: &str| request.is_empty() || r == request || r.starts_with(&format!("{request}/"));
            of_claim(a, pod, str_at(c, "/name"), (namespace, name), index, fits);
        }
    }
    // A resource such as nvidia.com/gpu that a DeviceClass stands behind (1.34).
    let extended = pod.pointer("/status/extendedResourceClaimStatus");
    if let Some(name) = extended.map(|e| str_at(e, "/resourceClaimName")).filter(|n| !n.is_empty()) {
        for m in extended.map(|e| list(e, "/requestMappings")).unwrap_or_default() {
            let request = str_at(m, "/requestName");
            let container = str_at(m, "/containerName");
            of_claim(a, pod, container, (namespace, name), index, |r| r == request);
        }
    }
    health(a, pod);
}

/// Health of a claim's devices, as the kubelet had it from the driver. It names them `claim:NAME/REQUEST` and by an id of
/// their driver's (`gpu.nvidia.com/gpu=gpu-0`, `DRIVER/POOL/DEVICE`), which ends in the device's name.
fn health(a: &mut Assembly, pod: &Value) {
    let (namespace, name) = (str_at(pod, "/metadata/namespace"), str_at(pod, "/metadata/name"));
    for s in super::pods::statuses(pod) {
        let resources = list(s, "/allocatedResourcesStatus").iter();
        let devices = resources
            .filter(|r| str_at(r, "/name").starts_with("claim:"))
            .flat_map(|r| list(r, "/resources"))
            .take(MAX_RESULTS);
        for d in devices {
            let (id, health) = (str_at(d, "/resourceID"), str_at(d, "/health"));
            let names = |h: &Held| {
                let device = h.link.value.rsplit('/').next().unwrap_or_default();
                id.strip_suffix(device).is_some_and(|rest| rest.ends_with(['/', '=', '-']))
            };
            let own = |h: &&mut Held| {
                h.from == Source::Claim
                    && (h.namespace.as_str(), h.pod.as_str()) == (namespace, name)
                    && h.container == str_at(s, "/name")
                    && names(h)
            };
            let mut fits: Vec<&mut Held> = a.held.iter_mut().filter(own).collect();
            if let ([one], false) = (fits.as_mut_slice(), health.is_empty()) {
                one.health = Some(health.to_owned());
            }
        }
    }
}

/// The claim behind a pod's own name for it; none before it was made.
fn claim_name<'a>(pod: &'a Value, local: &str) -> Option<&'a str> {
    let named = |l: &'a [Value]| {
        let found = l.iter().find(|c| str_at(c, "/name") == local);
        found.map(|c| str_at(c, "/resourceClaimName")).filter(|n| !n.is_empty())
    };
    named(list(pod, "/spec/resourceClaims")).or_else(|| named(list(pod, "/status/resourceClaimStatuses")))
}

fn of_claim(
    a: &mut Assembly,
    pod: &Value,
    container: &str,
    key: (&str, &str),
    index: &Index<'_>,
    fits: impl Fn(&str) -> bool,
) {
    let (node, pod_name) = (str_at(pod, "/spec/nodeName"), str_at(pod, "/metadata/name"));
    let Some(claim) = index.claims.get(&key) else {
        a.gaps.push(Gap {
            what: format!("devices of claim {} of pod {}/{pod_name}", key.1, key.0),
            why: "the ResourceClaim was not read".into(),
            command: Some(format!("kubectl get resourceclaim -n {} {} -o yaml", key.0, key.1)),
        });
        return;
    };
    let results = list(claim, "/status/allocation/devices/results");
    if results.is_empty() {
        a.gaps.push(Gap {
            what: format!("devices of claim {} of pod {}/{pod_name}", key.1, key.0),
            why: "it is not allocated".into(),
            command: Some(format!("kubectl describe resourceclaim -n {} {}", key.0, key.1)),
        });
    }
    for r in results.iter().take(MAX_RESULTS).filter(|r| fits(str_at(r, "/request"))) {
        let names = (str_at(r, "/driver"), str_at(r, "/pool"), str_at(r, "/device"));
        let own = format!("{}/{}/{}", names.0, names.1, names.2);
        let id = index.devices.get(&(names.0.to_owned(), names.1.to_owned(), names.2.to_owned()));
        // A claim can hold network cards as well; without its slice only the driver's name tells.
        if id.is_none() && !names.0.contains("gpu") {
            continue;
        }
        let held = Held {
            device: id.cloned().unwrap_or_else(|| own.clone()),
            namespace: key.0.to_owned(),
            pod: pod_name.to_owned(),
            container: container.to_owned(),
            link: Link::new(&own, format!("status of ResourceClaim {}", key.1), Confidence::High),
            health: None,
            from: Source::Claim,
        };
        a.hold(held, node);
    }
}

/// Pods that a claim is reserved for and that were not read themselves: they hold its devices all the same.
pub(super) fn reserved(a: &mut Assembly, index: &Index<'_>, read: impl Fn(&str, &str) -> bool) {
    let mut keys: Vec<_> = index.claims.iter().collect();
    keys.order_by_key(|(k, _)| **k);
    for ((namespace, name), claim) in keys {
        for user in list(claim, "/status/reservedFor").iter().take(MAX_RESULTS) {
            let pod = str_at(user, "/name");
            if str_at(user, "/resource") != "pods" || read(namespace, pod) {
                continue;
            }
            for r in list(claim, "/status/allocation/devices/results").iter().take(MAX_RESULTS) {
                let part = |p: &str| str_at(r, p).to_owned();
                let Some(id) = index.devices.get(&(part("/driver"), part("/pool"), part("/device"))) else {
                    continue;
                };
                let held = Held {
                    device: id.clone(),
                    namespace: (*namespace).to_owned(),
                    pod: pod.to_owned(),
                    container: String::new(),
                    link: Link::new(
                        &format!("{}/{}/{}", part("/driver"), part("/pool"), part("/device")),
                        format!("reservedFor of ResourceClaim {name}"),
                        Confidence::High,
                    ),
                    health: None,
                    from: Source::Claim,
                };
                a.hold(held, "");
            }
        }
    }
}
