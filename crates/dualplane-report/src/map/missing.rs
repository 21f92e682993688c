//! What is missing in the finished map, with the command that gets it.

use super::model::{ContainerMap, Device, Map, NodeMap, PodMap};
use dualplane_base::command::on_node;
use dualplane_base::device_id as id;
use dualplane_base::order::Order as _;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::Gap;

/// Memory in use on a card of nobody: a CUDA context alone takes some hundred MiB, the driver's own share less.
const IN_USE: Bytes = Bytes(1 << 30);

/// Adds the gaps of a finished map.
pub(super) fn missing(map: &mut Map) {
    let mut gaps = Vec::new();
    for pod in &map.pods {
        for c in &pod.containers {
            // A literal variable asks for nothing: it only shows more than was given.
            if c.asks.iter().any(|l| l.source == "pod's spec") {
                gaps.extend(devices(pod, c));
                gaps.extend(model(pod, c));
            }
        }
    }
    for d in &map.devices {
        let divided = map.devices.iter().any(|o| o.attributes.value("parent") == Some(&d.id));
        gaps.extend(unknown_user(d).filter(|_| !divided));
        gaps.extend(identity(d));
    }
    let has_devices = |n: &&NodeMap| map.devices.iter().any(|d| d.node.as_deref() == Some(&n.name));
    gaps.extend(map.nodes.iter().filter(has_devices).filter_map(driver));
    map.gaps.extend(gaps);
    map.gaps.order();
    map.gaps.dedup();
}

fn devices(pod: &PodMap, c: &ContainerMap) -> Option<Gap> {
    let what = format!("devices of container {} of pod {}", c.name, pod.full_name());
    let Some(node) = &pod.node else {
        return Some(Gap {
            what,
            why: "the pod is not scheduled, so it has no devices".into(),
            command: Some(format!("kubectl describe pod -n {} {}", pod.namespace, pod.name)),
        });
    };
    if !c.devices.is_empty() {
        return None;
    }
    if matches!(pod.phase.as_str(), "Succeeded" | "Failed") {
        let why = "the pod ended and released its devices; logs and metrics from its lifetime may name them";
        return Some(Gap { what, why: why.into(), command: None });
    }
    let list =
        if c.asks.iter().any(|l| l.value.starts_with("amd.com/")) { "amd-smi list" } else { "nvidia-smi -L" };
    let command = if c.state.starts_with("running") {
        format!("kubectl exec -n {} {} -c {} -- {list}", pod.namespace, pod.name, c.name)
    } else {
        on_node(&node.value, "cat /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
    };
    Some(Gap {
        what,
        why: "not named by the pod's status (allocatedResourcesStatus: kubelet 1.31 and later, \
        ResourceHealthStatus), a ResourceClaim or a DCGM exporter"
            .into(),
        command: Some(command),
    })
}

fn model(pod: &PodMap, c: &ContainerMap) -> Option<Gap> {
    c.models.is_empty().then(|| Gap {
        what: format!("model of container {} of pod {}", c.name, pod.full_name()),
        why: "no engine responds, and the command line names no model".into(),
        command: Some(format!(
            "kubectl get --raw /api/v1/namespaces/{}/pods/{}:8000/proxy/v1/models",
            pod.namespace, pod.name
        )),
    })
}

fn unknown_user(d: &Device) -> Option<Gap> {
    let used = d.used.filter(|u| *u >= IN_USE && d.holders.is_empty())?;
    Some(Gap {
        what: format!("the user of {used} on {}", d.id),
        why: "no pod uses it: it belongs to a process outside Kubernetes, a process that outlived its \
        pod, or a container with NVIDIA_VISIBLE_DEVICES; run `dualplane map --pid PID` on the node"
            .into(),
        command: Some(on_node(
            d.node.as_deref().unwrap_or("NODE"),
            "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv",
        )),
    })
}

fn identity(d: &Device) -> Option<Gap> {
    let (what, why) = if d.mig && d.attributes.get("parent").is_none() {
        ("card", "no source names the GPU of this MIG instance")
    } else if !d.mig && !id::is_uuid(&d.id) {
        ("UUID", "the device plugin or driver uses its own name, and no source maps it to a UUID")
    } else {
        return None;
    };
    Some(Gap {
        what: format!("{what} of {}", d.id),
        why: why.into(),
        command: Some(on_node(d.node.as_deref().unwrap_or("NODE"), "nvidia-smi -L")),
    })
}

fn driver(n: &NodeMap) -> Option<Gap> {
    n.attributes.get("driver").is_none().then(|| Gap {
        what: format!("driver of node {}", n.name),
        why: "not reported by GPU feature discovery labels, a ResourceSlice or a DCGM exporter".into(),
        command: Some(on_node(&n.name, "cat /proc/driver/nvidia/version")),
    })
}
