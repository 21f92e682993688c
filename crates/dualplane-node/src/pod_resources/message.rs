//! The messages of `v1.PodResourcesLister/List`, those fields that are read.
//!
//! Numbers are those of `k8s.io/kubelet/pkg/apis/podresources/v1/api.proto`; they do not change within v1. What is not named
//! here (processors, memory, topology) is skipped without being kept.

use super::{Device, PodDevices};

/// Containers with devices: 250 pods of a large node, with a few each.
const MAX_CONTAINERS: usize = 4096;
/// Ids of all of them: 16 cards in 48 replicas each are 768.
const MAX_IDS: usize = 8192;
/// Characters of an id or a name: names of Kubernetes have 253, resources 317.
const MAX_TEXT: usize = 512;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) pods: Vec<Pod>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Pod {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) containers: Vec<Container>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Container {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) devices: Vec<Devices>,
    #[prost(message, repeated, tag = "5")]
    pub(super) claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Devices {
    #[prost(string, tag = "1")]
    pub(super) resource: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) ids: Vec<String>,
}

/// What dynamic resource allocation gave.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Claim {
    #[prost(message, repeated, tag = "4")]
    pub(super) resources: Vec<Claimed>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Claimed {
    #[prost(message, repeated, tag = "1")]
    pub(super) cdi: Vec<Cdi>,
    #[prost(string, tag = "2")]
    pub(super) driver: String,
    #[prost(string, tag = "3")]
    pub(super) pool: String,
    #[prost(string, tag = "4")]
    pub(super) device: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Cdi {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

/// Containers with devices of a resource that `wanted` takes. The kubelet tells a resource once for each NUMA node, and
/// claims one by one: they are put together.
pub(super) fn devices(answer: ListResponse, wanted: impl Fn(&str) -> bool) -> Vec<PodDevices> {
    let mut out: Vec<PodDevices> = Vec::new();
    let mut ids = 0;
    for pod in answer.pods {
        for c in pod.containers {
            let plugged = c.devices.into_iter().map(|d| (d.resource, d.ids));
            let claimed = c.claims.into_iter().flat_map(|c| c.resources).map(claimed);
            let mut devices: Vec<Device> = Vec::new();
            for (resource, given) in plugged.chain(claimed).filter(|(r, _)| wanted(r) && r.len() <= MAX_TEXT)
            {
                let fits = given.into_iter().filter(|i| !i.is_empty() && i.len() <= MAX_TEXT);
                let given: Vec<String> = fits.take(MAX_IDS - ids).collect();
                ids += given.len();
                match devices.iter_mut().find(|d| d.resource == resource) {
                    Some(d) => d.ids.extend(given),
                    None => devices.push(Device { resource, ids: given }),
                }
            }
            devices.retain(|d| !d.ids.is_empty());
            if !devices.is_empty() && out.len() < MAX_CONTAINERS {
                let (namespace, pod) = (pod.namespace.clone(), pod.name.clone());
                out.push(PodDevices { namespace, pod, container: c.name, devices });
            }
        }
    }
    out
}

/// Driver and ids. Kubelets before 1.32 tell CDI names alone: `VENDOR/CLASS=NAME`.
fn claimed(c: Claimed) -> (String, Vec<String>) {
    if !c.driver.is_empty() && !c.device.is_empty() {
        let id = format!("{}/{}/{}", c.driver, c.pool, c.device);
        return (c.driver, vec![id]);
    }
    let names: Vec<String> = c.cdi.into_iter().map(|c| c.name).collect();
    let vendor = names.first().and_then(|n| n.split('/').next()).unwrap_or_default().to_owned();
    (if c.driver.is_empty() { vendor } else { c.driver }, names)
}
