//! The engine's own metrics and the DCGM exporter's, through the API server: no port is opened and no shell is run.

use dualplane_base::order::Order as _;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use dualplane_core::knowledge::Engines;
use dualplane_report::map::asks_for_gpu;
use serde_json::Value;

use super::SHORT;
use super::context::Context;
use super::source::{Missing, SourceData, Work};
use crate::api::{Api, ApiError, path};
use crate::find::text;

/// Of one page of metrics: a busy engine's has some hundred KiB.
pub(crate) const MAX_METRICS: usize = 4 << 20;
/// Ports of one pod that are asked.
const MAX_PORTS: usize = 4;
/// Port of the DCGM exporter.
pub(crate) const DCGM_PORT: u64 = 9400;
/// How its pods are labelled by the GPU operator and by its own chart.
pub(crate) const DCGM_LABELS: &[&str] =
    &["app=nvidia-dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter", "app=dcgm-exporter"];

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    if cx.runs() {
        for port in ports(&cx.pod) {
            let missing = Missing {
                what: format!("the engine's metrics on port {port}"),
                command: Some(format!(
                    "kubectl get --raw /api/v1/namespaces/{}/pods/{}:{port}/proxy/metrics",
                    cx.namespace, cx.pod_name
                )),
                wanted: false,
            };
            work.add(format!("engine metrics :{port}"), missing, metrics(cx, port));
        }
    }
    if !cx.node.is_empty() && asks_for_gpu(&cx.pod) {
        let missing = Missing {
            what: format!("GPU metrics of node {} (DCGM exporter)", cx.node),
            command: Some("kubectl get pods -A -l app=nvidia-dcgm-exporter -o wide".into()),
            wanted: false,
        };
        work.add("DCGM exporter", missing, dcgm(cx));
    }
}

/// Ports that may serve metrics: what the annotations say, else the container's ports, else what engines use.
pub(crate) fn ports(pod: &Value) -> Vec<u64> {
    let annotated = text(pod, "/metadata/annotations/prometheus.io~1port").parse();
    if let Ok(port) = annotated {
        return vec![port];
    }
    let mut ports: Vec<u64> = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|c| c.get("ports")?.as_array())
        .flatten()
        .filter_map(|p| p.get("containerPort")?.as_u64())
        .collect();
    let usual = usual_ports(pod);
    if ports.is_empty() {
        // A port that is not declared may be listened on all the same; one guess costs one short request.
        ports.extend(usual.first());
    }
    ports.order_by_key(|p| usual.iter().position(|k| k == p).unwrap_or(usual.len()));
    ports.dedup();
    ports.truncate(MAX_PORTS);
    ports
}

/// Ports on which engines answer `/metrics` unless told otherwise: those of the engine that an image names, then those of
/// the usual engine, then the ports that most engines have.
fn usual_ports(pod: &Value) -> Vec<u64> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    let engines = Engines::embedded();
    let named = containers.filter_map(|c| engines.by_image(c.get("image")?.as_str()?));
    let mut ports: Vec<u16> = named.flat_map(|n| n.server.metrics_ports()).copied().collect();
    ports.extend(engines.usual().into_iter().flat_map(|d| d.metrics_ports()));
    let mut all: Vec<u16> =
        engines.iter().flat_map(|d| d.metrics_ports().iter().chain(&d.ports)).copied().collect();
    let count = all.clone();
    all.order_by_key(|p| Reverse(count.iter().filter(|c| *c == p).count()));
    ports.extend(all);
    let mut seen = BTreeSet::new();
    ports.retain(|p| seen.insert(*p));
    ports.into_iter().map(u64::from).collect()
}

async fn metrics(cx: &Context<'_>, port: u64) -> Result<SourceData, ApiError> {
    let path = pod_proxy(&cx.namespace, &cx.pod_name, port, "metrics");
    let body = match cx.api.get_bounded(&path, SHORT, MAX_METRICS).await {
        // The engine's door, not the API server's: its words would be misleading.
        Err(ApiError::Unauthorized(_)) => {
            return Err(ApiError::Status {
                status: 401,
                why: "the engine requires an API key, which the API server's proxy does not forward".into(),
            });
        }
        // Nobody listens there, or not with HTTP: there is nothing to miss.
        Err(ApiError::Status { status: 400 | 404 | 405 | 500..=504, .. }) => return Ok(SourceData::default()),
        other => other?,
    };
    if !is_metrics(&body) {
        return Ok(SourceData::default());
    }
    Ok(SourceData::one(cx.text(&format!("metrics/engine-{port}.prom"), &body)))
}

async fn dcgm(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let body = cx.shared.once(&format!("dcgm/{}", cx.node), dcgm_metrics(cx)).await?;
    if !is_metrics(&body.0) {
        return Ok(SourceData::default());
    }
    Ok(SourceData::one(cx.text("metrics/dcgm.prom", &body.0)))
}

async fn dcgm_metrics(cx: &Context<'_>) -> Result<(Vec<u8>, u64), ApiError> {
    let Some((namespace, name)) = dcgm_pod(cx.api, &cx.node).await? else { return Ok((Vec::new(), 0)) };
    let path = pod_proxy(&namespace, &name, DCGM_PORT, "metrics");
    let body = cx.api.get_bounded(&path, SHORT, MAX_METRICS).await?;
    let bytes = body.len() as u64;
    Ok((body, bytes))
}

/// The exporter's pod on a node.
pub(crate) async fn dcgm_pod(api: &Api, node: &str) -> Result<Option<(String, String)>, ApiError> {
    let on_node = format!("spec.nodeName={node}");
    for labels in DCGM_LABELS {
        let query = [("labelSelector", *labels), ("fieldSelector", on_node.as_str())];
        let list = api.list(&path::cluster("v1", "pods"), &query, Some).await?;
        if let Some(pod) = list.items.first() {
            return Ok(Some((text(pod, "/metadata/namespace"), text(pod, "/metadata/name"))));
        }
    }
    Ok(None)
}

/// A port of a pod, through the API server.
pub(crate) fn pod_proxy(namespace: &str, pod: &str, port: u64, below: &str) -> String {
    let pods = path::namespaced("v1", namespace, "pods");
    // The port is a number; the colon before it must stay as it is.
    format!("{}:{port}/proxy/{below}", path::named(&pods, pod))
}

pub(crate) fn is_metrics(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(body.get(..body.len().min(4096)).unwrap_or_default());
    head.lines().any(|l| l.starts_with("# TYPE ") || l.starts_with("# HELP "))
        || head.lines().take(20).filter(|l| l.contains(' ') && !l.starts_with('<')).count() > 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_ports_of_an_engine_are_found() {
        let of = |pod: Value| ports(&pod);
        assert_eq!(of(json!({"metadata": {"annotations": {"prometheus.io/port": "9000"}}})), [9000]);
        let declared =
            json!({"spec": {"containers": [{"ports": [{"containerPort": 22}, {"containerPort": 30000}]}]}});
        assert_eq!(of(declared), [30000, 22]);
        assert_eq!(of(json!({})), [8000]);
        assert_eq!(of(json!({"spec": {"containers": [{"image": "lmsysorg/sglang:v0.5.8"}]}})), [30000]);
    }

    #[test]
    fn a_web_page_is_no_metrics() {
        assert!(is_metrics(b"# TYPE vllm:x gauge\nvllm:x 1\n"));
        assert!(!is_metrics(b"<html>\n<body>404 not found\n"));
    }
}
