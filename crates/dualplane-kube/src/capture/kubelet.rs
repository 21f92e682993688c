//! What the kubelet and metrics-server measure now: the next instance, and the neighbours on the node.

use dualplane_base::order::Order as _;
use dualplane_core::evidence::RawFile;
use serde_json::Value;

use super::SHORT;
use super::context::Context;
use super::source::{Missing, SourceData, Work};
use crate::api::{ApiError, parse, path};
use crate::find::text;

/// Pods of the node in the summary besides the one that died: the largest.
const NEIGHBOURS: usize = 20;
/// Bytes of cAdvisor's lines that are kept.
const MAX_LINES: usize = 2 << 20;

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    let top = Missing {
        what: "the pod's metrics from metrics-server".into(),
        command: Some(format!("kubectl top pod {} -n {} --containers", cx.pod_name, cx.namespace)),
        wanted: false,
    };
    work.add("metrics-server", top, metrics_server(cx));
    if cx.node.is_empty() {
        return;
    }
    let summary = Missing {
        what: format!("the kubelet's summary of node {}", cx.node),
        command: Some(format!("kubectl get --raw /api/v1/nodes/{}/proxy/stats/summary", cx.node)),
        wanted: true,
    };
    work.add("kubelet summary", summary, stats(cx));
    let cadvisor = Missing {
        what: "cAdvisor's metrics of the pod".into(),
        command: Some(format!("kubectl get --raw /api/v1/nodes/{}/proxy/metrics/cadvisor", cx.node)),
        wanted: true,
    };
    work.add("cadvisor", cadvisor, cadvisor_lines(cx));
}

async fn metrics_server(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let list = path::namespaced("metrics.k8s.io/v1beta1", &cx.namespace, "pods");
    let path = path::named(&list, &cx.pod_name);
    let value = parse(&path, &cx.api.get_within(&path, SHORT).await?)?;
    Ok(SourceData::one(cx.json("metrics/pod.json", value)))
}

/// The node, the pod and its largest neighbours.
async fn stats(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let path = cx.node_proxy("stats/summary");
    let body =
        cx.shared.once(&path, async { cx.api.get_within(&path, SHORT * 2).await.map(|b| (b, 0)) }).await?;
    let bytes = body.0.len() as u64;
    let mut summary = parse(&path, &body.0)?;
    if let Some(pods) = summary.get_mut("pods").and_then(Value::as_array_mut) {
        let own = |p: &Value| {
            text(p, "/podRef/name") == cx.pod_name && text(p, "/podRef/namespace") == cx.namespace
        };
        let used = |p: &Value| p.pointer("/memory/workingSetBytes").and_then(Value::as_u64).unwrap_or(0);
        pods.order_by_key(|p| (!own(p), std::cmp::Reverse(used(p))));
        pods.truncate(NEIGHBOURS + 1);
    }
    let file = cx.json("metrics/stats-summary.json", summary);
    Ok(SourceData { bytes, ..SourceData::one(file) })
}

/// The pod's lines, and how full the groups of all pods became: a full node has tens of thousands.
async fn cadvisor_lines(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let own = [format!("namespace=\"{}\"", cx.namespace), format!("pod=\"{}\"", cx.pod_name)];
    let mut filter =
        LineFilter::new(|line| own.iter().all(|w| line.contains(w.as_str())) || of_all_pods(line));
    let bytes = cx.api.stream(&cx.node_proxy("metrics/cadvisor"), SHORT * 2, |c| filter.push(c)).await?;
    if filter.kept.is_empty() {
        return Ok(SourceData { bytes, ..SourceData::default() });
    }
    let file: RawFile = cx.text("metrics/cadvisor.prom", &filter.kept);
    Ok(SourceData { bytes, ..SourceData::one(file) })
}

/// Peak and limit of a cgroup that holds pods: of the node's, or of a class of service.
fn of_all_pods(line: &str) -> bool {
    const NAMES: [&str; 2] = ["container_memory_max_usage_bytes{", "container_spec_memory_limit_bytes{"];
    const ENDS: [&str; 3] = ["kubepods", "burstable", "besteffort"];
    let id = || line.split_once("id=\"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(id, _)| id);
    NAMES.iter().any(|n| line.starts_with(n))
        && id().contains("kubepods")
        && ENDS.iter().any(|e| id().trim_end_matches(".slice").ends_with(e))
}

/// The lines that somebody wants.
struct LineFilter<F> {
    wanted: F,
    open: Vec<u8>,
    kept: Vec<u8>,
}

impl<F: Fn(&str) -> bool> LineFilter<F> {
    fn new(wanted: F) -> Self {
        Self { wanted, open: Vec::new(), kept: Vec::new() }
    }

    fn push(&mut self, chunk: &[u8]) {
        for part in chunk.split_inclusive(|b| *b == b'\n') {
            // A line that does not end is no metric.
            if self.open.len() + part.len() > 64 << 10 {
                self.open.clear();
                continue;
            }
            self.open.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.open);
                let room = self.kept.len() + self.open.len() <= MAX_LINES;
                if room && (self.wanted)(&line) {
                    self.kept.extend_from_slice(&self.open);
                }
                self.open.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_pod_are_kept_however_the_answer_is_cut() {
        let text = "a{namespace=\"n\",pod=\"p\"} 1\nb{namespace=\"n\",pod=\"q\"} 2\nc{pod=\"p\",namespace=\"n\"} 3\n";
        for size in [1, 7, 1000] {
            let mut lines = LineFilter::new(|l| l.contains("namespace=\"n\"") && l.contains("pod=\"p\""));
            text.as_bytes().chunks(size).for_each(|c| lines.push(c));
            let kept = String::from_utf8(lines.kept).unwrap();
            assert_eq!(kept, "a{namespace=\"n\",pod=\"p\"} 1\nc{pod=\"p\",namespace=\"n\"} 3\n");
        }
    }

    #[test]
    fn groups_of_pods_are_told_from_a_pod() {
        let line =
            |id: &str| format!("container_memory_max_usage_bytes{{container=\"\",id=\"{id}\",pod=\"\"}} 1 2");
        for id in [
            "/kubepods",
            "/kubepods.slice",
            "/kubelet/kubepods",
            "/kubepods/burstable",
            "/kubepods.slice/kubepods-besteffort.slice",
        ] {
            assert!(of_all_pods(&line(id)), "{id}");
        }
        for id in
            ["/", "/system.slice", "/kubepods/burstable/pod42ff", "/kubepods.slice/kubepods-pod42.slice"]
        {
            assert!(!of_all_pods(&line(id)), "{id}");
        }
        assert!(!of_all_pods("container_memory_rss{id=\"/kubepods\"} 1"));
    }
}
