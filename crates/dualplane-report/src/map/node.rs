//! A node: labels of GPU feature discovery (NVIDIA's and AMD's), and what its kubelet reports.

use serde_json::Value;

use super::link::Attributes;
use super::model::NodeMap;
use dualplane_base::Confidence;
use dualplane_base::json::str_at;
use dualplane_base::units::parse_k8s_memory;

/// Label, and the name of what it tells. Of several labels of one name each is a source of its own.
const LABELS: &[(&str, &str)] = &[
    ("nvidia.com/cuda.driver-version.full", "driver"),
    ("amd.com/gpu.driver-version", "driver"),
    ("nvidia.com/cuda.runtime-version.full", "CUDA"),
    ("nvidia.com/gpu.product", "card"),
    ("amd.com/gpu.product-name", "card"),
    ("nvidia.com/gpu.count", "cards"),
    ("nvidia.com/gpu.sharing-strategy", "sharing"),
    ("nvidia.com/gpu.replicas", "replicas"),
    ("nvidia.com/mig.strategy", "MIG strategy"),
    ("nvidia.com/mig.config", "MIG config"),
    ("cloud.google.com/gke-accelerator", "accelerator"),
    ("cloud.google.com/gke-gpu-sharing-strategy", "sharing"),
];
/// What the kubelet reports.
const INFO: &[(&str, &str)] = &[
    ("kernelVersion", "kernel"),
    ("osImage", "OS"),
    ("containerRuntimeVersion", "container runtime"),
    ("kubeletVersion", "kubelet"),
];

pub(super) fn read(node: &Value) -> NodeMap {
    let mut a = Attributes::default();
    let label = |name: &str| {
        let value = node.pointer("/metadata/labels").and_then(|l| l.get(name)).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    for (name, what) in LABELS {
        a.tell(what, label(name), format!("node label {name}"), Confidence::Medium);
    }
    // The older labels, one part each; both sets stand on nodes of today.
    for (what, of, parts) in [
        ("driver", "nvidia.com/cuda.driver", ["major", "minor", "rev"].as_slice()),
        ("CUDA", "nvidia.com/cuda.runtime", ["major", "minor"].as_slice()),
    ] {
        let parts: Vec<&str> = parts.iter().map(|p| label(&format!("{of}.{p}"))).collect();
        let whole = parts.iter().copied().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(".");
        a.tell(what, &whole, format!("node labels {of}.*"), Confidence::Medium);
    }
    if let Some(bytes) = parse_k8s_memory(&format!("{}Mi", label("nvidia.com/gpu.memory"))) {
        let source = "node label nvidia.com/gpu.memory";
        a.tell("memory of a card", &bytes.to_string(), source, Confidence::Medium);
    }
    for (key, what) in INFO {
        let value = str_at(node, &format!("/status/nodeInfo/{key}"));
        a.tell(what, value, "node's status", Confidence::High);
    }
    for (resource, count) in
        node.pointer("/status/allocatable").and_then(Value::as_object).into_iter().flatten()
    {
        if dualplane_base::device_id::is_gpu(resource) {
            let told = format!("{} of {resource}", dualplane_base::json::text_of(count));
            a.tell("allocatable", &told, format!("node's status ({resource})"), Confidence::High);
        }
    }
    NodeMap { name: str_at(node, "/metadata/name").to_owned(), attributes: a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn old_and_new_labels_and_none() {
        let node = json!({"metadata": {"name": "n", "labels": {
            "nvidia.com/cuda.driver.major": "570", "nvidia.com/cuda.driver.minor": "86",
            "nvidia.com/cuda.driver.rev": "15", "nvidia.com/gpu.memory": "81559"}},
            "status": {"nodeInfo": {"kubeletVersion": "v1.28.4"}, "allocatable": {"nvidia.com/gpu": "2", "cpu": "4"}}});
        let n = read(&node);
        assert_eq!(n.attributes.value("driver"), Some("570.86.15"));
        assert_eq!(n.attributes.value("memory of a card"), Some("79.65 GiB"));
        assert_eq!(n.attributes.value("allocatable"), Some("2 of nvidia.com/gpu"));
        assert_eq!((n.attributes.value("card"), n.attributes.value("kubelet")), (None, Some("v1.28.4")));
        assert!(read(&json!({})).attributes.is_empty());
    }
}
