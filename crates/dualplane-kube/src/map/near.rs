//! Other pods on the same nodes: who shares a card, and who holds the ones beside it.

use std::collections::BTreeSet;

use dualplane_report::map::asks_for_gpu;
use futures_util::future::join_all;
use serde_json::Value;

use super::Fetched;
use crate::api::{Api, path};
use crate::find::text;

/// Up to so many nodes are asked about one by one; for more, one list of all pods is less work for the API server.
const FEW_NODES: usize = 4;

pub(super) async fn neighbours(api: &Api, nodes: Option<&BTreeSet<String>>, asked: &[Value]) -> Fetched {
    let known: BTreeSet<String> = asked.iter().map(|p| text(p, "/metadata/uid")).collect();
    let keep = |mut pod: Value| {
        let node = text(&pod, "/spec/nodeName");
        let near = !node.is_empty() && nodes.is_none_or(|n| n.contains(&node));
        if !near || !asks_for_gpu(&pod) || known.contains(&text(&pod, "/metadata/uid")) {
            return None;
        }
        if let Some(of) = pod.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            of.remove("managedFields");
        }
        Some(pod)
    };
    let base = path::cluster("v1", "pods");
    let lists = match nodes {
        Some(nodes) if nodes.len() <= FEW_NODES => {
            let fields: Vec<String> = nodes.iter().map(|n| format!("spec.nodeName={n}")).collect();
            join_all(fields.iter().map(|f| async {
                let query = [("fieldSelector", f.as_str())];
                api.list(&base, &query, keep).await
            }))
            .await
        }
        _ => vec![api.list(&base, &[], keep).await],
    };
    let mut all = Fetched::default();
    for list in lists {
        let got = Fetched::of(
            list.map(|l| l.items),
            "other pods on the same GPUs",
            "kubectl get pods -A --field-selector spec.nodeName=NODE",
        );
        all.items.extend(got.items);
        all.gaps.extend(got.gaps);
    }
    all.gaps.dedup();
    all
}
