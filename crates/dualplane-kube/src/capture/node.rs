//! The node: its conditions, its memory, its GPUs, the labels of GPU feature discovery.

use super::context::Context;
use super::source::{Missing, SourceData, Work};
use crate::api::{ApiError, parse, path};

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    if cx.node.is_empty() {
        return;
    }
    let missing = Missing {
        what: format!("node {}", cx.node),
        command: Some(format!("kubectl get node {} -o json", cx.node)),
        wanted: true,
    };
    work.add("node", missing, node(cx));
}

async fn node(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let path = path::named(&path::cluster("v1", "nodes"), &cx.node);
    let body = cx.shared.once(&path, async { cx.api.get(&path).await.map(|b| (b, 0)) }).await?;
    let node = parse(&path, &body.0)?;
    Ok(SourceData::one(cx.json("node.json", node)))
}
