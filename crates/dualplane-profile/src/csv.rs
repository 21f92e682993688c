//! Traces as CSV: Azure's (`TIMESTAMP,ContextTokens,GeneratedTokens`), BurstGPT's (`Request tokens,Response tokens`), and
//! any table whose heads are names of keys.

use crate::keys::{Key, key};
use crate::tally::Seen;

/// No trace has more columns.
const MAX_COLUMNS: usize = 200;

/// What each column tells.
#[derive(Debug, Clone)]
pub(crate) struct Heads(Vec<Option<Key>>);

/// The heads of a table of requests; none where the line is none.
pub(crate) fn heads(line: &[u8]) -> Option<Heads> {
    let line = std::str::from_utf8(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)).ok()?;
    let all: Vec<Option<Key>> = fields(line).map(|h| key(h.trim().as_bytes())).collect();
    let has = |k| all.contains(&Some(k));
    (has(Key::Input) && has(Key::Output)).then_some(Heads(all))
}

impl Heads {
    pub(crate) fn row(&self, line: &[u8]) -> Option<Seen> {
        let line = std::str::from_utf8(line).ok()?;
        let mut seen = Seen::default();
        for (head, field) in self.0.iter().zip(fields(line)) {
            if let Some(key) = head {
                seen.take(*key, field.trim());
            }
        }
        seen.has_length().then_some(seen)
    }
}

/// The fields of a line. Quotes are taken off; what they hold is no number, so doubled ones do not matter.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line.trim_end_matches(['\r', '\n']));
    std::iter::from_fn(move || {
        let text = rest?;
        if let Some(quoted) = text.strip_prefix('"')
            && let Some((field, after)) = quoted.split_once('"')
        {
            rest = after.split_once(',').map(|(_, tail)| tail);
            return Some(field);
        }
        match text.split_once(',') {
            Some((field, tail)) => {
                rest = Some(tail);
                Some(field)
            }
            None => {
                rest = None;
                Some(text)
            }
        }
    })
    .take(MAX_COLUMNS)
}
