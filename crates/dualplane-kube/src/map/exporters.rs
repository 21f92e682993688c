//! DCGM exporters: one pod a node, asked through the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dualplane_core::evidence::{Gap, metrics};
use dualplane_report::map::Exporter;
use futures_util::future::join_all;
use serde_json::Value;

use crate::api::{Api, ApiError, path};
use crate::capture::engine::{DCGM_LABELS, DCGM_PORT, MAX_METRICS, is_metrics, pod_proxy};
use crate::capture::source::{Missing, gap};
use crate::find::text;

/// Exporters that are asked at most, each with some hundred KiB of answer.
const MAX_EXPORTERS: usize = 64;
/// A busy exporter takes a second or two.
const TIME: Duration = Duration::from_secs(5);

/// Asks those on these nodes, or all.
pub(super) async fn fetch(api: &Api, nodes: Option<&BTreeSet<String>>) -> (Vec<Exporter>, Vec<Gap>) {
    let pods = match pods(api, nodes).await {
        Ok(pods) => pods,
        Err(e) => return (Vec::new(), vec![missing("DCGM exporters", &e)]),
    };
    let mut gaps = Vec::new();
    if pods.len() > MAX_EXPORTERS {
        gaps.push(Gap {
            what: format!("{} of {} DCGM exporters", pods.len() - MAX_EXPORTERS, pods.len()),
            why: format!("at most {MAX_EXPORTERS} are queried at once; name a node with --node"),
            command: None,
        });
    }
    let asked = pods.into_iter().take(MAX_EXPORTERS).map(|(node, (namespace, name))| async move {
        let answer =
            api.get_bounded(&pod_proxy(&namespace, &name, DCGM_PORT, "metrics"), TIME, MAX_METRICS).await;
        (node, format!("{namespace}/{name}"), answer)
    });
    let mut exporters = Vec::new();
    for (node, pod, answer) in join_all(asked).await {
        match answer {
            Ok(body) if is_metrics(&body) => {
                let (samples, _) = metrics::parse(&String::from_utf8_lossy(&body), "dcgm");
                exporters.push(Exporter { node, samples });
            }
            Ok(_) => {}
            Err(e) => gaps.push(missing(&format!("GPUs of node {node} from its DCGM exporter {pod}"), &e)),
        }
    }
    (exporters, gaps)
}

fn missing(what: &str, fault: &ApiError) -> Gap {
    let command = Some("kubectl get pods -A -l app=nvidia-dcgm-exporter -o wide".to_owned());
    gap(Missing { what: what.to_owned(), command, wanted: true }, fault)
}

/// Node, to the exporter's namespace and name; the first label that finds one on a node counts.
async fn pods(
    api: &Api,
    nodes: Option<&BTreeSet<String>>,
) -> Result<BTreeMap<String, (String, String)>, ApiError> {
    let field = match nodes {
        // An exact field spares the API server the other nodes.
        Some(n) if n.len() == 1 => n.first().map(|n| format!("spec.nodeName={n}")),
        _ => None,
    };
    let base = path::cluster("v1", "pods");
    let lists = DCGM_LABELS.iter().map(|labels| {
        let mut query = vec![("labelSelector", *labels)];
        query.extend(field.as_deref().map(|f| ("fieldSelector", f)));
        let base = base.as_str();
        async move {
            let slim = |p: Value| Some(p).filter(|p| text(p, "/status/phase") == "Running");
            api.list(base, &query, slim).await
        }
    });
    let mut found = BTreeMap::new();
    for list in join_all(lists).await {
        for pod in list?.items {
            let node = text(&pod, "/spec/nodeName");
            if nodes.is_none_or(|n| n.contains(&node)) {
                let name = (text(&pod, "/metadata/namespace"), text(&pod, "/metadata/name"));
                found.entry(node).or_insert(name);
            }
        }
    }
    Ok(found)
}
