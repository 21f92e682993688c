//! An event, and the line of the text that it stands on.

use std::cell::Cell;

use dualplane_base::json::str_at;
use serde_json::Value;

use super::fields::time_at;
use crate::evidence::kube_model::Event;

/// Bytes that finding the lines of a list's events may look through again.
const MAX_SOUGHT: usize = 256 << 20;

/// Both `v1` and `events.k8s.io/v1` forms.
pub(super) fn event(v: &Value, file: &str, lines: &LineIndex<'_>) -> Event {
    let object = if v.get("involvedObject").is_some() { "/involvedObject" } else { "/regarding" };
    let field = str_at(v, &format!("{object}/fieldPath"));
    let message =
        ["/message", "/note"].iter().map(|p| str_at(v, p)).find(|m| !m.is_empty()).unwrap_or_default();
    let first = ["/firstTimestamp", "/eventTime", "/deprecatedFirstTimestamp", "/metadata/creationTimestamp"];
    let last = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"];
    let count = ["/series/count", "/count", "/deprecatedCount"]
        .iter()
        .find_map(|p| v.pointer(p).and_then(Value::as_u64));
    let first = first.iter().find_map(|p| time_at(v, p));
    Event {
        file: file.to_owned(),
        line: lines.find(message),
        reason: str_at(v, "/reason").to_owned(),
        message: message.to_owned(),
        warning: str_at(v, "/type") == "Warning",
        object: (
            str_at(v, &format!("{object}/kind")).to_owned(),
            str_at(v, &format!("{object}/name")).to_owned(),
            str_at(v, &format!("{object}/uid")).to_owned(),
        ),
        namespace: str_at(v, &format!("{object}/namespace")).to_owned(),
        container: field.split_once('{').and_then(|(_, c)| c.split_once('}')).map(|(c, _)| c.to_owned()),
        first,
        last: last.iter().find_map(|p| time_at(v, p)).or(first),
        count: count.unwrap_or(1),
    }
}

/// Finds the line of a value in the text it was parsed from, so that an event can be cited by line.
///
/// Items come in the order of the text: the search goes on from the last find, so that many events cost one pass.
pub(super) struct LineIndex<'a> {
    text: &'a str,
    /// Byte offset of the last find and the number of line ends before it.
    last: Cell<(usize, u64)>,
    /// Bytes that may still be looked through.
    left: Cell<usize>,
}

impl<'a> LineIndex<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, last: Cell::new((0, 0)), left: Cell::new(MAX_SOUGHT) }
    }

    /// Line of the next place that holds the value, as JSON escapes it or plain.
    fn find(&self, value: &str) -> Option<u64> {
        if value.is_empty() || self.left.get() == 0 {
            return None;
        }
        let quoted = Value::String(value.to_owned()).to_string();
        let (from, lines) = self.last.get();
        let behind =
            self.text.get(from..).and_then(|t| t.find(&quoted).or_else(|| t.find(value)).map(|i| from + i));
        let (at, base, before) = match behind {
            Some(at) => (at, from, lines),
            // Out of order (a merged list): once from the start, as long as that does not cost for ever.
            None => {
                self.left.set(self.left.get().saturating_sub(self.text.len()));
                (self.text.get(..from)?.find(&quoted)?, 0, 0)
            }
        };
        let lines = before + self.text.get(base..at)?.bytes().filter(|b| *b == b'\n').count() as u64;
        self.last.set((at, lines));
        Some(lines + 1)
    }
}
