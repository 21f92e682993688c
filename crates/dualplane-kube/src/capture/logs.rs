//! Logs of every container: the dead instance's and the running one's, streamed.
//!
//! A small log is kept as it is. Of a larger one the head, the tail and the lines that say something are kept, with their
//! numbers (`log_buffer.rs`), so that memory does not grow with the log. Each log is one request: the kubelet reads it
//! from one open file, which a rotation meanwhile does not change. A large one is read from the node's file instead, where
//! that is allowed (`log_file.rs`).

use std::time::Duration;

use dualplane_core::evidence::Gap;
use jiff::Timestamp;
use serde_json::Value;

use super::context::Context;
use super::log_buffer::LogBuffer;
use super::log_file;
use super::source::{Missing, SourceData, Work};
use crate::api::{ApiError, path};
use crate::find::{statuses, text};

/// For one log. 200 MiB take some seconds; a slow node must not keep the rest waiting.
const TIME: Duration = Duration::from_secs(60);
/// Of the beginning so much tells which log it is.
const BEGINNING: usize = 256;
/// Lines asked for where a log could not be read to its end: the death is there.
const TAIL_LINES: &str = "5000";
/// Containers of one pod; an engine has one to ten.
pub(super) const MAX_CONTAINERS: usize = 32;
/// A log's times are of the runtime that read it, an instance's of the one that saw it end; a container that dies again
/// waits longer than this for its next start.
const SLACK_S: i64 = 10;

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    let statuses: Vec<&Value> = cx.statuses().take(MAX_CONTAINERS).collect();
    let more = cx.statuses().count().saturating_sub(MAX_CONTAINERS);
    if more > 0 {
        let gap = Gap {
            what: format!("logs of {more} more containers"),
            why: format!("only {MAX_CONTAINERS} containers are read"),
            command: Some(format!("kubectl logs {} -n {} -c CONTAINER", cx.pod_name, cx.namespace)),
        };
        let missing = Missing { what: gap.what.clone(), command: None, wanted: true };
        let read = SourceData { gaps: vec![gap], ..SourceData::default() };
        work.add("logs of more containers", missing, async { Ok(read) });
    }
    // The dead first, of all containers.
    for previous in [true, false] {
        for status in &statuses {
            let container = text(status, "/name");
            if !has_log(status, previous) {
                continue;
            }
            let which = if previous { "previous" } else { "current" };
            let flag = if previous { " --previous" } else { "" };
            let missing = Missing {
                what: format!("the {which} log of container {container}"),
                command: Some(format!(
                    "kubectl logs {} -n {} -c {container}{flag} --timestamps",
                    cx.pod_name, cx.namespace
                )),
                wanted: true,
            };
            let name = format!("logs/{container} ({which})");
            work.add(name, missing, one(cx, status, container, previous));
        }
    }
}

/// Whether the kubelet may have this log.
fn has_log(status: &Value, previous: bool) -> bool {
    if previous {
        status.pointer("/lastState/terminated").is_some()
            || status.get("restartCount").and_then(Value::as_u64).unwrap_or(0) > 0
    } else {
        // A container that waits after a death shows the dead instance's log as its current one as well.
        status.pointer("/state/running").is_some() || status.pointer("/state/terminated").is_some()
    }
}

async fn one(
    cx: &Context<'_>,
    status: &Value,
    container: String,
    previous: bool,
) -> Result<SourceData, ApiError> {
    let which = if previous { "previous" } else { "current" };
    let mut query = vec![("container", container.as_str()), ("timestamps", "true")];
    if previous {
        query.push(("previous", "true"));
    }
    let base = cx.pod_path("log");
    let file = format!("logs/{container}.{which}.log");
    let request = path::with_query(&base, &query);
    let on_node = log_file::path_of(cx, status, &container, previous);
    let mut keep = LogBuffer::new(cx.sifter);
    let mut begins: Vec<u8> = Vec::new();
    let mut result = cx
        .api
        .stream_while(&request, TIME, |chunk| {
            keep.push(chunk);
            if begins.len() < BEGINNING {
                begins.extend(chunk.iter().take(BEGINNING));
            }
            on_node.is_none() || keep.bytes() <= log_file::LARGE
        })
        .await;
    if let (Ok(false), Some(file)) = (&result, &on_node) {
        match log_file::read(cx, file, &begins, TIME).await {
            Some(whole) => (keep, result) = (whole, Ok(true)),
            None => {
                keep = LogBuffer::new(cx.sifter);
                result = cx.api.stream(&request, TIME, |chunk| keep.push(chunk)).await.map(|_| true);
            }
        }
    }
    let bytes = keep.bytes();
    let (kept, read) = (keep.finish(), bytes > 0);
    if read && times_differ(&kept, status, previous) && has_moved(cx, status, previous).await {
        let gap = Gap {
            what: format!("the {which} log of container {container}"),
            why: "this log belongs to another instance: the container restarted, or the pod was \
            recreated, after its state was read; run the command again"
                .into(),
            command: None,
        };
        return Ok(SourceData { files: Vec::new(), bytes, gaps: vec![gap] });
    }
    match result {
        Ok(_) if !read => Ok(SourceData::default()),
        Ok(_) => Ok(SourceData { files: vec![cx.text(&file, &kept)], bytes, gaps: Vec::new() }),
        Err(e) if !read => Err(e),
        Err(e) => {
            // Its end says most. What was read before the break stays.
            query.push(("tailLines", TAIL_LINES));
            let mut tail = LogBuffer::new(cx.sifter);
            let ended = cx.api.stream(&path::with_query(&base, &query), TIME, |c| tail.push(c)).await;
            let mut files = vec![cx.text(&file, &kept)];
            let mut why = format!("stopped after {} MiB: {e}; the part before that was used", bytes >> 20);
            if tail.bytes() > 0 {
                let name = format!("logs/{container}.{which}.tail.log");
                files.push(cx.text(&name, &tail.finish()));
                why.push_str(" together with the last lines, fetched separately");
            }
            if let Err(e) = ended {
                why.push_str(&format!("; could not read the last lines: {e}"));
            }
            let gap = Gap {
                what: format!("the middle of the {which} log of container {container}"),
                why,
                command: None,
            };
            Ok(SourceData { files, bytes, gaps: vec![gap] })
        }
    }
}

/// Whether another instance answers to the container's name by now: it was started again, or the pod made again, as
/// StatefulSets do under the same name.
async fn has_moved(cx: &Context<'_>, status: &Value, previous: bool) -> bool {
    let pods = path::namespaced("v1", &cx.namespace, "pods");
    // A pod that is gone has no successor yet.
    let Ok(now) = cx.api.object(&path::named(&pods, &cx.pod_name)).await else { return false };
    let at = if previous { "/lastState/terminated/containerID" } else { "/state/terminated/containerID" };
    let (name, id) = (text(status, "/name"), text(status, at));
    let same = statuses(&now).any(|s| text(s, "/name") == name && text(s, at) == id);
    text(&now, "/metadata/uid") != text(&cx.pod, "/metadata/uid") || !same
}

/// Whether a log's times lie outside of the life that the pod's status tells of. That alone is no proof: a virtual
/// node's kubelet stamps lines when it is asked for them.
fn times_differ(log: &[u8], status: &Value, previous: bool) -> bool {
    let at = if previous { "/lastState/terminated" } else { "/state/terminated" };
    let Some(ended) = status.pointer(at) else { return false };
    let told = |key: &str| text(ended, key).parse::<Timestamp>().ok().map(Timestamp::as_second);
    let stamp = |line: &[u8]| {
        let word = line.get(..line.iter().position(|b| *b == b' ')?)?;
        std::str::from_utf8(word).ok()?.parse::<Timestamp>().ok().map(Timestamp::as_second)
    };
    // What is left out of a large log is said in lines without a time.
    let first = log.split(|b| *b == b'\n').take(8).find_map(stamp);
    let last = log.rsplit(|b| *b == b'\n').take(8).find_map(stamp);
    let after = |s: Option<i64>| s.zip(told("/finishedAt")).is_some_and(|(s, end)| s > end + SLACK_S);
    let before = |s: Option<i64>| s.zip(told("/startedAt")).is_some_and(|(s, start)| s < start - SLACK_S);
    after(first) || after(last) || before(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_log_of_another_instance_is_told_by_its_times() {
        let status = json!({"lastState": {"terminated":
            {"startedAt": "2026-11-21T10:00:00Z", "finishedAt": "2026-11-21T10:05:00Z"}}, "state": {"running": {}}});
        let log = |first: &str, last: &str| {
            format!("2026-11-21T{first}.1Z a\n2026-11-21T{last}.2Z b\n").into_bytes()
        };
        let other = |first, last| times_differ(&log(first, last), &status, true);
        assert!(!other("10:00:01", "10:05:03"));
        // Rotated: the newest file begins late.
        assert!(!other("10:04:00", "10:05:00"));
        assert!(
            other("10:05:30", "10:05:31") && other("10:05:02", "10:40:00") && other("09:00:00", "09:10:00")
        );
        assert!(!times_differ(b"no time\n", &status, true));
        assert!(!times_differ(&log("11:00:00", "11:00:00"), &status, false));
    }
}
