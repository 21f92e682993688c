//! What bounds or moves pods in the namespace: quotas, default limits, autoscalers, disruption budgets.

use serde_json::Value;

use super::context::Context;
use super::events::as_list;
use super::source::{Missing, SourceData, Work, gap};
use crate::api::{ApiError, path};

/// Kinds, and where they are.
const KINDS: &[(&str, &str)] = &[
    ("v1", "resourcequotas"),
    ("v1", "limitranges"),
    ("autoscaling/v2", "horizontalpodautoscalers"),
    ("policy/v1", "poddisruptionbudgets"),
];
/// Objects of one kind.
const MAX: usize = 100;

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    let missing =
        Missing { what: "quotas and autoscalers of the namespace".into(), command: None, wanted: false };
    work.add("policy", missing, policy(cx));
}

async fn policy(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let lists = KINDS.iter().map(|(group_version, resource)| async move {
        let base = path::namespaced(group_version, &cx.namespace, resource);
        (*resource, cx.api.list(&base, &[], Some).await)
    });
    let mut items: Vec<Value> = Vec::new();
    let mut gaps = Vec::new();
    for (resource, list) in futures_util::future::join_all(lists).await {
        match list {
            Ok(list) => items.extend(list.items.into_iter().take(MAX)),
            Err(e) if e.is_absent() => {}
            Err(e) => {
                let command = format!("kubectl get {resource} -n {} -o json", cx.namespace);
                let missing = Missing { what: resource.to_owned(), command: Some(command), wanted: true };
                gaps.push(gap(missing, &e));
            }
        }
    }
    let mut read = if items.is_empty() {
        SourceData::default()
    } else {
        SourceData::one(as_list(cx, "policy.json", items))
    };
    read.gaps = gaps;
    Ok(read)
}
