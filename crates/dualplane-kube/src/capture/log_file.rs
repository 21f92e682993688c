//! A large log as the file that lies on the node, through the kubelet's `/logs/`.
//!
//! For `kubectl logs` the kubelet takes each line apart and puts it together again: some 300 MB take it ten seconds, half a
//! minute on a busy node. The file itself goes as fast as the network. It has the runtime's framing, which
//! the evidence reads as well. Whether it is the same log is told by its first line.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::context::Context;
use super::log_buffer::LogBuffer;
use super::node_logs::{kubelets_uid, which};

/// A log that is larger than this is worth another request.
pub(super) const LARGE: u64 = 4 << 20;
/// So much of the beginning holds the first line's time.
const HEAD: usize = 256;

/// Path of the file of an instance below the kubelet's proxy; `None` where the pod has no node or no such instance.
pub(super) fn path_of(cx: &Context<'_>, status: &Value, container: &str, previous: bool) -> Option<String> {
    let wanted = if previous { "previous" } else { "current" };
    let restarts = status.get("restartCount").and_then(Value::as_u64).unwrap_or(0);
    let instance = [Some(restarts), restarts.checked_sub(1)]
        .into_iter()
        .flatten()
        .find(|i| which(status, *i) == Some(wanted))
        .filter(|_| !cx.node.is_empty())?;
    let folder = format!("pods/{}_{}_{}/{container}", cx.namespace, cx.pod_name, kubelets_uid(&cx.pod));
    Some(cx.node_proxy(&format!("logs/{folder}/{instance}.log")))
}

/// The file, where it may be read, begins as `begins` does, and comes to its end.
pub(super) async fn read<'c>(
    cx: &Context<'c>,
    path: &str,
    begins: &[u8],
    time: Duration,
) -> Option<LogBuffer<'c>> {
    let wanted = first_time(begins)?;
    let mut keep = LogBuffer::new(cx.sifter);
    let mut checked = false;
    let streamed = cx
        .api
        .stream_while(path, time, |chunk| {
            keep.push(chunk);
            if !checked && keep.head().len() >= HEAD {
                checked = true;
                return first_time(keep.head()) == Some(wanted);
            }
            true
        })
        .await;
    // What broke off, and what is of another instance, is asked for line by line.
    (matches!(streamed, Ok(true)) && checked).then_some(keep)
}

/// The time with which a log begins: the first word, with `kubectl logs --timestamps` as in the runtime's file.
fn first_time(log: &[u8]) -> Option<Timestamp> {
    let word = log.get(..log.iter().position(|b| *b == b' ')?)?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_line_is_told_by_its_time_in_both_forms() {
        let api = b"2026-11-22T18:56:20.12Z INFO begins\n";
        let file = b"2026-11-22T18:56:20.120000000Z stdout F INFO begins\n";
        assert!(first_time(api).is_some() && first_time(api) == first_time(file));
        assert_ne!(first_time(file), first_time(b"2026-11-22T18:56:20.120000001Z stdout F INFO begins\n"));
        assert_eq!(first_time(b"no time\n"), None);
        assert_eq!(first_time(b"{\"log\":\"of Docker\"}\n"), None);
    }
}
