//! A JSON object at the end of a log line, whole lines of JSON included: read, masked by key, written back as valid JSON.

use std::borrow::Cow;

use serde_json::Value;

use super::Redactor;
use super::spans::{self, Spans};

/// Nothing shorter holds a key and a secret.
const SHORTEST: usize = 8;

/// The object and where it begins.
fn read(text: &str) -> Option<(usize, Value)> {
    let trimmed = text.trim_end();
    if !trimmed.ends_with('}') || trimmed.len() < SHORTEST {
        return None;
    }
    let open = text.find('{')?;
    let body = trimmed.get(open..)?;
    // `{'a': 1}` and `{name}` are no JSON; looking at two bytes spares the attempt.
    if !body.get(1..)?.trim_start().starts_with('"') {
        return None;
    }
    serde_json::from_str(body).ok().filter(Value::is_object).map(|v| (open, v))
}

/// Masks a message that ends with a JSON object; `None` where it does not, or where a user's text begins before it.
pub(super) fn redact<'t>(r: &mut Redactor<'_>, text: &'t str, spans: &Spans<'_>) -> Option<Cow<'t, str>> {
    let (open, mut value) = read(text)?;
    if spans.user.is_some_and(|u| u <= open) {
        return None;
    }
    let head = text.get(..open)?;
    let before = r.edits;
    let masked = spans::apply(head, &spans::find(r.knowledge, head), &mut r.counts);
    let head_changed = matches!(masked, Cow::Owned(_));
    r.walk(&mut value);
    if !head_changed && r.edits == before {
        return Some(Cow::Borrowed(text));
    }
    r.edits += u64::from(head_changed);
    let end = text.get(text.trim_end().len()..).unwrap_or_default();
    Some(Cow::Owned(format!("{masked}{value}{end}")))
}
