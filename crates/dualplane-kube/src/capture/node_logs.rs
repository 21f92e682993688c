//! Logs that lie on the node, through the kubelet's `/logs/`: the kernel's, and the parts of container logs that were
//! rotated away from what `kubectl logs` shows.

use std::io::Read as _;
use std::time::Duration;

use dualplane_base::command::on_node;
use dualplane_base::order::Order as _;
use dualplane_core::evidence::{Gap, RawFile};
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use tokio::time::Instant;

use super::context::Context;
use super::kernel_log;
use super::log_buffer::LogBuffer;
use super::logs::MAX_CONTAINERS;
use super::source::{Missing, SourceData, Work};
use crate::api::{ApiError, path};
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
/// For one file, and for all parts of a pod.
const TIME: Duration = Duration::from_secs(30);
const ALL: Duration = Duration::from_secs(90);

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    if cx.node.is_empty() {
        return;
    }
    let missing = Missing {
        what: format!("the kernel log of node {}", cx.node),
        command: Some(on_node(&cx.node, "dmesg -T > kernel.log")),
        wanted: false,
    };
    work.add("kernel log", missing, kernel(cx));
    let missing = Missing {
        what: "rotated parts of the container logs".into(),
        command: Some(on_node(&cx.node, "ls -l /var/log/pods/*/*/")),
        wanted: false,
    };
    work.add("rotated logs", missing, rotated(cx));
}

fn logs(cx: &Context<'_>, below: &str) -> String {
    cx.node_proxy(&format!("logs/{below}"))
}

/// Names in a folder of `/logs/`, which answers with a page of links.
async fn index(cx: &Context<'_>, below: &str) -> Result<Vec<String>, ApiError> {
    let body = match cx.api.get_bounded(&logs(cx, below), TIME, MAX_INDEX).await {
        // The kubelet may be told not to serve its logs.
        Err(ApiError::Status { status: 405, .. }) => return Ok(Vec::new()),
        other => other?,
    };
    Ok(links(&String::from_utf8_lossy(&body)))
}

fn links(page: &str) -> Vec<String> {
    let names = page.split("<a href=\"").skip(1).filter_map(|l| l.split('"').next());
    // A name with a slash inside or with escapes is none that a runtime makes.
    names.filter(|n| !n.trim_end_matches('/').contains(['/', '%', '&'])).map(str::to_owned).collect()
}

async fn kernel(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let names = index(cx, "").await?;
    let Some(name) = KERNEL_LOGS.iter().find(|k| names.iter().any(|n| n == *k)) else {
        return Ok(SourceData::default());
    };
    let path = logs(cx, name);
    let log = cx.shared.once(&path, kernel_log::tail(cx, &path, TIME)).await?;
    if log.0.is_empty() {
        return Ok(SourceData::default());
    }
    Ok(SourceData {
        // Masked when it was read.
        files: vec![RawFile::new(format!("node/kernel/{name}"), log.0.clone())],
        bytes: log.1,
        gaps: Vec::new(),
    })
}

/// `N.log.DATE` and `N.log.DATE.gz` of the instance that runs and of the one that died.
async fn rotated(cx: &Context<'_>) -> Result<SourceData, ApiError> {
    let until = Instant::now() + ALL;
    let folder = format!("pods/{}_{}_{}/", cx.namespace, cx.pod_name, kubelets_uid(&cx.pod));
    let mut read = SourceData::default();
    let mut parts: Vec<(&str, String, String)> = Vec::new();
    for status in cx.statuses().take(MAX_CONTAINERS) {
        let container = text(status, "/name");
        let names = match index(cx, &format!("{folder}{container}/")).await {
            Ok(names) => names,
            Err(e) if e.is_absent() => continue,
            // What else was found stays.
            Err(e) if !parts.is_empty() => {
                read.gaps.push(missing_part(&format!("of container {container}"), &e.to_string()));
                break;
            }
            Err(e) => return Err(e),
        };
        for name in names {
            let Some((instance, _)) = name.split_once(".log.") else { continue };
            let Ok(instance) = instance.parse::<u64>() else { continue };
            if let Some(which) = which(status, instance).filter(|_| !name.ends_with(".tmp")) {
                parts.push((which, container.clone(), name));
            }
        }
        if Instant::now() > until {
            break;
        }
    }
    // Dates sort as text.
    parts.order_by(|a, b| b.2.cmp(&a.2));
    parts.truncate(MAX_PARTS);
    for (which, container, name) in parts {
        let source = logs(cx, &format!("{folder}{container}/{}", path::segment(&name)));
        let target = format!("logs/{container}.{which}/{}", name.trim_end_matches(".gz"));
        if Instant::now() > until {
            read.gaps.push(missing_part(&target, "the others took too long"));
            continue;
        }
        let (file, bytes, failed) = part(cx, &source, &target, name.ends_with(".gz")).await;
        read.bytes += bytes;
        read.files.extend(file);
        read.gaps.extend(failed.map(|why| missing_part(&target, &why)));
    }
    Ok(read)
}

fn missing_part(what: &str, why: &str) -> Gap {
    Gap { what: format!("rotated log {what}"), why: why.to_owned(), command: None }
}

/// The uid under which the kubelet keeps a pod: of a static pod, whose object only mirrors it, the hash of its manifest.
pub(super) fn kubelets_uid(pod: &Value) -> String {
    let hash = text(pod, "/metadata/annotations/kubernetes.io~1config.hash");
    if hash.is_empty() { text(pod, "/metadata/uid") } else { hash }
}

/// What `kubectl logs` calls an instance. The kubelet counts on when it starts a container, so while one waits for its
/// next start the number is the dead one's; the instance before that is of no interest any more.
pub(super) fn which(status: &Value, instance: u64) -> Option<&'static str> {
    let number = status.get("restartCount").and_then(Value::as_u64).unwrap_or(0);
    let waits = status.pointer("/state/running").is_none() && status.pointer("/state/terminated").is_none();
    match (waits, number.checked_sub(instance)?) {
        (true, 0) | (false, 1) => Some("previous"),
        (false, 0) => Some("current"),
        _ => None,
    }
}

/// A part, as far as it came, and why it came no further.
async fn part(
    cx: &Context<'_>,
    source: &str,
    target: &str,
    packed: bool,
) -> (Option<RawFile>, u64, Option<String>) {
    let mut keep = LogBuffer::new(cx.sifter);
    let (bytes, failed) = if packed {
        match cx.api.get_bounded(source, TIME, MAX_PACKED).await {
            Ok(body) => (body.len() as u64, unpack(&body, |c| keep.push(c)).err()),
            Err(e) => (0, Some(e.to_string())),
        }
    } else {
        let streamed = cx.api.stream(source, TIME, |c| keep.push(c)).await;
        (keep.bytes(), streamed.err().map(|e| e.to_string()))
    };
    let file = (keep.bytes() > 0).then(|| cx.text(target, &keep.finish()));
    (file, bytes, failed)
}

/// A damaged end leaves what came before it.
fn unpack(body: &[u8], mut sink: impl FnMut(&[u8])) -> Result<(), String> {
    let mut unpacked = MultiGzDecoder::new(body).take(MAX_UNPACKED);
    let mut piece = vec![0; 64 << 10];
    loop {
        let n = unpacked.read(&mut piece).map_err(|e| format!("it is damaged: {e}"))?;
        match piece.get(..n) {
            Some(chunk) if !chunk.is_empty() => sink(chunk),
            _ if unpacked.limit() == 0 => {
                return Err(format!("it is larger than {} MiB", MAX_UNPACKED >> 20));
            }
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn instances_are_called_as_kubectl_calls_them() {
        let of = |state: &str, instance| which(&json!({"restartCount": 9, "state": {state: {}}}), instance);
        // Seen on a real node: in CrashLoopBackOff with 10 restarts the dead instance's file is 10.log.
        assert_eq!((of("waiting", 9), of("waiting", 8)), (Some("previous"), None));
        assert_eq!(
            (of("running", 9), of("running", 8), of("running", 7)),
            (Some("current"), Some("previous"), None)
        );
        assert_eq!((of("terminated", 9), of("terminated", 8)), (Some("current"), Some("previous")));
        assert_eq!(of("running", 10), None);
    }

    #[test]
    fn what_comes_before_the_damage_is_kept() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packed, &b"a line\n".repeat(50_000)).unwrap();
        let packed = packed.finish().unwrap();
        let mut whole = 0;
        assert_eq!(unpack(&packed, |c| whole += c.len()), Ok(()));
        assert_eq!(whole, 350_000);
        let mut some = 0;
        assert!(unpack(&packed[..packed.len() / 2], |c| some += c.len()).unwrap_err().contains("damaged"));
        assert!(some > 0 && some < whole);
    }

    #[test]
    fn only_plain_names_of_an_index_are_followed() {
        let page = "<pre>\n<a href=\"0.log\">0.log</a>\n<a href=\"containers/\">containers/</a>\n<a href=\"../etc\">x</a>\n<a href=\"a%2fb\">x</a></pre>";
        assert_eq!(links(page), ["0.log", "containers/"]);
    }
}
