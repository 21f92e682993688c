//! Logs that lie on the node, through the kubelet's `/logs/`: the kernel's, and the parts of container logs that were
//! rotated away from what `kubectl logs` shows.

use std::io::Read as _;
use std::time::Duration;

use dualplane_core::evidence::RawFile;
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::context::Context;
use super::kernel_log;
use super::logs::Keep;
use super::source::{Missing, Read, Work};
use crate::api::{Fault, path};
use crate::find::text;

/// Files that hold the kernel's lines, the purest first.
const KERNEL_LOGS: &[&str] = &["kern.log", "messages", "syslog", "dmesg"];
/// Rotated parts that are read, the newest.
const MAX_PARTS: usize = 6;
/// Of one compressed part, before and after it is unpacked.
const MAX_PACKED: usize = 8 << 20;
const MAX_UNPACKED: u64 = 256 << 20;
/// An index of a folder.
const MAX_INDEX: usize = 1 << 20;
/// For one file.
const TIME: Duration = Duration::from_secs(30);

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    if cx.node.is_empty() {
        return;
    }
    let missing = Missing {
        what: format!("the kernel log of node {}", cx.node),
        command: Some(format!(
            "kubectl debug node/{} -it --profile=sysadmin --image=busybox -- chroot /host dmesg -T > kernel.log",
            cx.node
        )),
        wanted: false,
    };
    work.add("kernel log", missing, kernel(cx));
    let missing = Missing {
        what: "rotated parts of the container logs".into(),
        command: Some("on the node: ls -l /var/log/pods/*/*/".into()),
        wanted: false,
    };
    work.add("rotated logs", missing, rotated(cx));
}

fn logs(cx: &Context<'_>, below: &str) -> String {
    format!("{}/proxy/logs/{below}", path::named(&path::cluster("v1", "nodes"), &cx.node))
}

/// Names in a folder of `/logs/`, which answers with a page of links.
async fn index(cx: &Context<'_>, below: &str) -> Result<Vec<String>, Fault> {
    let body = match cx.api.get_within(&logs(cx, below), TIME).await {
        // The kubelet may be told not to serve its logs.
        Err(Fault::Status { status: 405, .. }) => return Ok(Vec::new()),
        other => other?,
    };
    let page =
        String::from_utf8_lossy(body.get(..body.len().min(MAX_INDEX)).unwrap_or_default()).into_owned();
    Ok(links(&page))
}

fn links(page: &str) -> Vec<String> {
    let names = page.split("<a href=\"").skip(1).filter_map(|l| l.split('"').next());
    // A name with a slash inside or with escapes is none that a runtime makes.
    names.filter(|n| !n.trim_end_matches('/').contains(['/', '%', '&'])).map(str::to_owned).collect()
}

async fn kernel(cx: &Context<'_>) -> Result<Read, Fault> {
    let names = index(cx, "").await?;
    let Some(name) = KERNEL_LOGS.iter().find(|k| names.iter().any(|n| n == *k)) else {
        return Ok(Read::default());
    };
    let path = logs(cx, name);
    let log = cx.shared.once(&path, kernel_log::tail(cx, &path, TIME)).await?;
    if log.0.is_empty() {
        return Ok(Read::default());
    }
    Ok(Read { files: vec![cx.text(&format!("node/kernel/{name}"), &log.0)], bytes: log.1, gaps: Vec::new() })
}

/// `N.log.DATE` and `N.log.DATE.gz` of the instance that runs and of the one that died.
async fn rotated(cx: &Context<'_>) -> Result<Read, Fault> {
    let folder = format!("pods/{}_{}_{}/", cx.namespace, cx.pod_name, text(&cx.pod, "/metadata/uid"));
    let mut parts: Vec<(u64, String, String)> = Vec::new();
    for status in cx.statuses() {
        let container = text(status, "/name");
        let runs = status.get("restartCount").and_then(Value::as_u64).unwrap_or(0);
        let names = match index(cx, &format!("{folder}{container}/")).await {
            Ok(names) => names,
            Err(e) if e.is_absent() => continue,
            Err(e) => return Err(e),
        };
        for name in names {
            let Some((instance, _)) = name.split_once(".log.") else { continue };
            let Ok(instance) = instance.parse::<u64>() else { continue };
            if instance + 1 >= runs && !name.ends_with(".tmp") {
                parts.push((instance, container.clone(), name));
            }
        }
    }
    // Dates sort as text.
    parts.sort_by(|a, b| b.2.cmp(&a.2));
    parts.truncate(MAX_PARTS);
    let mut read = Read::default();
    for (instance, container, name) in parts {
        let runs = cx
            .statuses()
            .find(|s| text(s, "/name") == container)
            .and_then(|s| s.get("restartCount")?.as_u64());
        let which = if Some(instance) == runs { "current" } else { "previous" };
        let source = logs(cx, &format!("{folder}{container}/{}", path::segment(&name)));
        let target = format!("logs/{container}.{which}/{}", name.trim_end_matches(".gz"));
        let (file, bytes) = part(cx, &source, &target, name.ends_with(".gz")).await?;
        read.bytes += bytes;
        read.files.push(file);
    }
    Ok(read)
}

async fn part(cx: &Context<'_>, source: &str, target: &str, packed: bool) -> Result<(RawFile, u64), Fault> {
    let mut keep = Keep::new(cx.sifter);
    if !packed {
        let bytes = cx.api.stream(source, TIME, |c| keep.push(c)).await?;
        return Ok((cx.text(target, &keep.finish()), bytes));
    }
    let body = cx.api.get_within(source, TIME).await?;
    let bytes = body.len() as u64;
    let body = body.get(..body.len().min(MAX_PACKED)).unwrap_or_default();
    let mut unpacked = MultiGzDecoder::new(body).take(MAX_UNPACKED);
    let mut piece = vec![0; 64 << 10];
    // A damaged end leaves what came before it.
    while let Ok(n) = unpacked.read(&mut piece) {
        match piece.get(..n) {
            Some(chunk) if !chunk.is_empty() => keep.push(chunk),
            _ => break,
        }
    }
    Ok((cx.text(target, &keep.finish()), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_of_an_index_are_followed() {
        let page = "<pre>\n<a href=\"0.log\">0.log</a>\n<a href=\"containers/\">containers/</a>\n<a href=\"../etc\">x</a>\n<a href=\"a%2fb\">x</a></pre>";
        assert_eq!(links(page), ["0.log", "containers/"]);
    }
}
