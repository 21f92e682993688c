//! Logs of every container: the dead instance's and the running one's, streamed.
//!
//! A log up to [`WHOLE`] is kept as it is. Of a larger one the head, the tail and the lines that say something are
//! kept, with their numbers (`dualplane_core::sift`), so that memory does not grow with the log. Each log is one
//! request: the kubelet reads it from one open file, which a rotation meanwhile does not change.

use std::time::Duration;

use dualplane_core::evidence::Gap;
use dualplane_core::sift::{self, Feed, Sifter};
use serde_json::Value;

use super::context::Context;
use super::source::{Missing, Read, Work};
use crate::api::{Fault, path};
use crate::find::text;

/// A log up to here is kept whole.
const WHOLE: usize = 2 << 20;
/// Of a larger log so much is kept.
const KEPT: usize = 2 << 20;
/// For one log. 200 MiB take some seconds; a slow node must not keep the rest waiting.
const TIME: Duration = Duration::from_secs(60);
/// Lines asked for where a log could not be read to its end: the death is there.
const TAIL_LINES: &str = "5000";
/// Containers of one pod; an engine has one to ten.
const MAX_CONTAINERS: usize = 32;

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    let statuses: Vec<&Value> = cx.statuses().take(MAX_CONTAINERS).collect();
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
            work.add(name, missing, one(cx, container, previous));
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

async fn one(cx: &Context<'_>, container: String, previous: bool) -> Result<Read, Fault> {
    let which = if previous { "previous" } else { "current" };
    let mut query = vec![("container", container.as_str()), ("timestamps", "true")];
    if previous {
        query.push(("previous", "true"));
    }
    let base = cx.pod_path("log");
    let file = format!("logs/{container}.{which}.log");
    let mut keep = Keep::new(cx.sifter);
    let result = cx.api.stream(&path::with_query(&base, &query), TIME, |chunk| keep.push(chunk)).await;
    let bytes = keep.bytes;
    let (kept, read) = (keep.finish(), bytes > 0);
    match result {
        Ok(_) if !read => Ok(Read::default()),
        Ok(_) => Ok(Read { files: vec![cx.text(&file, &kept)], bytes, gaps: Vec::new() }),
        Err(e) if !read => Err(e),
        Err(e) => {
            // Its end says most. What was read before the break stays.
            query.push(("tailLines", TAIL_LINES));
            let mut tail = Keep::new(cx.sifter);
            let ended = cx.api.stream(&path::with_query(&base, &query), TIME, |c| tail.push(c)).await;
            let mut files = vec![cx.text(&file, &kept)];
            let mut why = format!("after {} MiB: {e}; what came before was used", bytes >> 20);
            if tail.bytes > 0 {
                let name = format!("logs/{container}.{which}.tail.log");
                files.push(cx.text(&name, &tail.finish()));
                why.push_str(" with the last lines, which were asked for again");
            }
            if let Err(e) = ended {
                why.push_str(&format!("; the last lines could not be read: {e}"));
            }
            let gap = Gap {
                what: format!("the middle of the {which} log of container {container}"),
                why,
                command: None,
            };
            Ok(Read { files, bytes, gaps: vec![gap] })
        }
    }
}

/// A log as it comes.
pub(super) struct Keep<'s> {
    sifter: Option<&'s Sifter>,
    whole: Vec<u8>,
    feed: Option<Feed<'s>>,
    bytes: u64,
}

impl<'s> Keep<'s> {
    pub(super) fn new(sifter: Option<&'s Sifter>) -> Self {
        Self { sifter, whole: Vec::new(), feed: None, bytes: 0 }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        if let Some(feed) = &mut self.feed {
            feed.push(chunk);
            return;
        }
        self.whole.extend_from_slice(chunk);
        if self.whole.len() > WHOLE
            && let Some(sifter) = self.sifter
        {
            let mut feed = Feed::new(sifter, KEPT);
            feed.push(&std::mem::take(&mut self.whole));
            self.feed = Some(feed);
        } else if self.whole.len() > WHOLE + KEPT {
            // Without a sifter the tail is what matters.
            self.whole.drain(..KEPT);
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        match self.feed {
            Some(feed) => sift::fold(&feed.finish()),
            None => self.whole,
        }
    }
}
