//! Judges a bundle with this very program, in a process of its own: what a hostile log does to a parser it does not do to
//! the recorder, and the memory of a verdict is given back at once.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use dualplane_agent::recorder::{Judge, Judged};
use dualplane_core::evidence::framing::parse_kmsg;
use serde_json::Value;

use crate::commands::Failure;

/// A verdict takes some 20 ms; of a log of 100 MB some seconds.
const TIME: Duration = Duration::from_secs(30);
/// Bytes of an answer.
const MAX_ANSWER: u64 = 4 << 20;
/// Characters of a trigger in a summary.
const TRIGGER: usize = 300;

/// Calls `dualplane triage`.
#[derive(Debug)]
pub(super) struct ChildJudge {
    program: PathBuf,
}

impl ChildJudge {
    pub(super) fn new() -> Result<Self, Failure> {
        // As a path of /proc it stays what runs here when the file is replaced.
        let own = PathBuf::from("/proc/self/exe");
        let program =
            std::fs::canonicalize(&own).map_err(|source| Failure::Unreadable { path: own, source })?;
        Ok(Self { program })
    }
}

impl Judge for ChildJudge {
    fn judge(&mut self, bundle: &Path) -> Result<Judged, String> {
        let mut child = Command::new(&self.program)
            .args(["triage", "-o", "json", "--"])
            .arg(bundle)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", self.program.display()))?;
        let out = child.stdout.take();
        let (tell, told) = channel();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = out.map(|o| o.take(MAX_ANSWER).read_to_end(&mut bytes));
            let _ = tell.send(read.and_then(Result::ok).map(|_| bytes));
        });
        let answer = told.recv_timeout(TIME);
        if answer.is_err() {
            let _ = child.kill();
        }
        let _ = child.wait();
        let _ = reader.join();
        let bytes = answer.ok().flatten().ok_or("the verdict took too long")?;
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|e| format!("the verdict cannot be read: {e}"))?;
        read(&value).ok_or_else(|| "the verdict has an unexpected format".to_owned())
    }
}

/// The verdict of the one incident, or of the first of several.
fn read(value: &Value) -> Option<Judged> {
    let one = value.pointer("/items/0").unwrap_or(value);
    let text = |p: &str| one.pointer(p).and_then(Value::as_str).map(ToOwned::to_owned);
    let trigger = text("/trigger/text").map(|t| said(&t).chars().take(TRIGGER).collect());
    Some(Judged { class: text("/verdict/class")?, plane: text("/verdict/plane")?, trigger })
}

/// What a kernel line says: the report quotes the record as it stands in the bundle's file (`4,8340,2756677836,-;…`), for
/// whoever opens that; in an Event or a list its numbers help nobody.
fn said(line: &str) -> &str {
    parse_kmsg(line).map_or(line, |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_record_is_quoted_by_its_text() {
        let judged = |line: &str| {
            let value = serde_json::json!({
                "verdict": { "class": "host_oom_killed", "plane": "host" },
                "trigger": { "text": line },
            });
            read(&value).and_then(|j| j.trigger)
        };
        let record = "4,8340,2756677836,-;java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0";
        let text = "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0";
        assert_eq!(judged(record).as_deref(), Some(text));
        let log = "ERROR 06-18; torch.OutOfMemoryError: CUDA out of memory";
        assert_eq!(judged(log).as_deref(), Some(log));
    }
}
