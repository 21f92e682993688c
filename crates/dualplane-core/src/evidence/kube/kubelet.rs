//! What the kubelet and metrics-server measure: `/stats/summary` and the objects of `metrics.k8s.io`.
//!
//! Both show the instance that runs at the moment of the capture, not the dead one.

use serde_json::Value;

use crate::evidence::Bundle;
use crate::evidence::host_model::{HostMemory, TopRow};
use crate::evidence::kube::opt_at;
use crate::units::{Bytes, parse_k8s_memory};
use dualplane_base::json::list;

/// Pods of a summary, and containers of each.
const MAX: usize = 500;

/// Whether it is a kubelet's summary.
pub(in crate::evidence) fn is_summary(value: &Value) -> bool {
    value.pointer("/node/nodeName").is_some() && value.get("pods").is_some_and(Value::is_array)
}

/// The node's memory and the working set of each container.
pub(in crate::evidence) fn summary(bundle: &mut Bundle, value: &Value, file: &str) {
    let amount = |v: &Value, p: &str| v.pointer(p).and_then(Value::as_u64).map(Bytes);
    if let Some(node) = value.get("node") {
        let used = amount(node, "/memory/workingSetBytes");
        let available = amount(node, "/memory/availableBytes");
        bundle.machines.push(HostMemory {
            file: file.to_owned(),
            line: 1,
            tool: "the kubelet's summary",
            node: opt_at(node, "/nodeName"),
            total: used.zip(available).map(|(u, a)| u.saturating_add(a)),
            available,
            used,
            used_percent: None,
        });
    }
    for pod in list(value, "/pods").iter().take(MAX) {
        let Some(name) = opt_at(pod, "/podRef/name") else { continue };
        for container in list(pod, "/containers").iter().take(MAX) {
            let Some(memory) = amount(container, "/memory/workingSetBytes") else { continue };
            bundle.tops.push(TopRow {
                file: file.to_owned(),
                line: 1,
                tool: "the kubelet's summary",
                namespace: opt_at(pod, "/podRef/namespace"),
                pod: name.clone(),
                container: opt_at(container, "/name"),
                memory,
            });
        }
    }
}

/// A `PodMetrics` object.
pub(in crate::evidence) fn pod_metrics(bundle: &mut Bundle, object: &Value, file: &str) -> bool {
    let Some(name) = opt_at(object, "/metadata/name") else { return false };
    for container in list(object, "/containers").iter().take(MAX) {
        let usage = opt_at(container, "/usage/memory");
        let Some(memory) = usage.as_deref().and_then(parse_k8s_memory) else { continue };
        bundle.tops.push(TopRow {
            file: file.to_owned(),
            line: 1,
            tool: "metrics-server",
            namespace: opt_at(object, "/metadata/namespace"),
            pod: name.clone(),
            container: opt_at(container, "/name"),
            memory,
        });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::RawFile;

    #[test]
    fn both_sources_give_working_sets() {
        let summary = r#"{"node":{"nodeName":"n1","memory":{"availableBytes":3000,"workingSetBytes":1000}},
          "pods":[{"podRef":{"name":"p","namespace":"ns"},"containers":[{"name":"c","memory":{"workingSetBytes":42}}]}]}"#;
        let metrics = r#"{"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"name":"p","namespace":"ns"},
          "containers":[{"name":"c","usage":{"memory":"2Ki"}}]}"#;
        let bundle = Bundle::from_files(vec![
            RawFile::new("stats-summary.json", summary),
            RawFile::new("pod-metrics.json", metrics),
        ]);
        assert!(bundle.gaps.is_empty(), "{:?}", bundle.gaps);
        let rows: Vec<_> = bundle.tops.iter().map(|t| (t.tool, t.memory.0)).collect();
        assert_eq!(rows, [("metrics-server", 2048), ("the kubelet's summary", 42)]);
        assert_eq!(bundle.machines.first().and_then(|m| m.total), Some(Bytes(4000)));
    }
}
