//! The node: its conditions, its memory, its GPUs, the labels of GPU feature discovery.

use super::context::Context;
use super::source::{Missing, Read, Work};
use crate::api::{Fault, path};

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

async fn node(cx: &Context<'_>) -> Result<Read, Fault> {
    let node = cx.api.object(&path::named(&path::cluster("v1", "nodes"), &cx.node)).await?;
    Ok(Read::one(cx.json("node.json", node)))
}
