//! A line of a log as its wrapping and its message, and how a masked message goes back into the wrapping.

use std::borrow::Cow;

use serde_json::Value;

use super::Redactor;
use crate::evidence::LogSource;
use crate::evidence::prefix;
use crate::text::strip_ansi;

/// A line taken apart.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    /// The line, its colours removed where it has any.
    base: Cow<'a, str>,
    /// Bytes of the base before the message, or before the JSON record.
    head: usize,
    /// The record, where the wrapping is JSON, and the key of the message in it.
    record: Option<(Value, &'static str)>,
    /// The message.
    pub(super) text: String,
    /// The message goes on in the next line of the stream.
    pub(super) partial: bool,
    /// Standard error, where the wrapping says so.
    pub(super) stderr: bool,
}

impl<'a> Frame<'a> {
    /// Takes a line apart.
    pub(super) fn of(log: &LogSource, raw: &'a str) -> Self {
        let base = strip_ansi(raw);
        let unwrapped = prefix::unwrap(log, &base);
        let partial = unwrapped.partial;
        let stderr = unwrapped.stderr;
        let inside = base.strip_suffix(&*unwrapped.text).map(str::len);
        // A record of JSON may stand in another wrapping, whose text it is as a whole.
        let record = match inside {
            Some(head) if !unwrapped.text.starts_with('{') || partial => {
                let text = unwrapped.text.into_owned();
                return Self { base, head, record: None, text, partial, stderr };
            }
            Some(head) => Some(head),
            None => base.find('{'),
        };
        let record = record.and_then(|head| {
            let value = serde_json::from_str::<Value>(base.get(head..)?).ok()?;
            Some((head, message_key(&value)?, value))
        });
        match record {
            Some((head, key, value)) => {
                let text = value.get(key).and_then(Value::as_str).unwrap_or_default();
                let text = text.trim_end_matches(['\n', '\r']).to_owned();
                Self { base, head, record: Some((value, key)), text, partial, stderr }
            }
            None => {
                let head = inside.unwrap_or_default();
                let text = base.get(head..).unwrap_or_default().to_owned();
                Self { base, head, record: None, text, partial, stderr }
            }
        }
    }

    /// The line with another message; `None` where nothing changes. The other fields of a record are masked on the way.
    pub(super) fn with(mut self, r: &mut Redactor<'_>, message: Option<String>) -> Option<String> {
        let head = self.base.get(..self.head).unwrap_or_default().to_owned();
        let Some((value, key)) = self.record.as_mut() else {
            return message.map(|m| head + &m);
        };
        let old = value.get(*key).and_then(Value::as_str).unwrap_or_default();
        let ends = old.get(old.trim_end_matches(['\n', '\r']).len()..).unwrap_or_default().to_owned();
        let kept = old.to_owned();
        let before = r.edits;
        if let Some(field) = value.get_mut(*key) {
            // It is masked as a message, not once more as a field that happens to be called `text`.
            *field = Value::Null;
        }
        r.walk(value);
        let changed = r.edits != before || message.is_some();
        if let Some(field) = value.get_mut(*key) {
            *field = Value::String(message.map_or(kept, |m| m + &ends));
        }
        let tail = self.base.get(self.base.trim_end().len()..).unwrap_or_default();
        changed.then(|| format!("{head}{value}{tail}"))
    }
}

/// The key under which a record's message stands. A body that a client sent may have a `text` as well, but no level or time.
fn message_key(record: &Value) -> Option<&'static str> {
    const OF_LOGS: &[&str] =
        &["level", "time", "timestamp", "ts", "@timestamp", "severity", "lvl", "levelname"];
    let is_log = OF_LOGS.iter().any(|k| record.get(k).is_some());
    ["log", "MESSAGE", "message", "msg", "text", "event"]
        .into_iter()
        .find(|k| record.get(k).is_some_and(Value::is_string) && (*k != "text" || is_log))
}
