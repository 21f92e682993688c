//! Masks secrets and what users wrote: in a line that a report quotes, and in whole files before they reach a disk.
//!
//! The rules are data: `knowledge/redaction.toml`, and the signatures that mark user text. [`Redactor`] masks files; what
//! the verdict needs stays as it is, and so does the number of lines.

mod args;
mod assign;
mod frame;
mod json_tail;
mod lines;
mod name;
mod object;
mod pem;
mod spans;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::knowledge::{Knowledge, SecretName};

/// Passes over one document; the second finds nothing in what programs write.
const MAX_PASSES: usize = 4;

/// Redacts files and counts by rule.
#[derive(Debug)]
pub struct Redactor<'k> {
    knowledge: &'k Knowledge,
    counts: BTreeMap<String, u64>,
    /// Edits so far, counted or not: whether a text must be written anew.
    edits: u64,
    /// Objects, lists and texts that the walk is inside of.
    depth: usize,
    /// Keys that were judged: a list repeats the same ones for each of its objects.
    keys: HashMap<String, Option<&'k SecretName>>,
}

/// Keys that are remembered.
const MAX_KEYS: usize = 4096;

impl<'k> Redactor<'k> {
    /// One that has masked nothing yet.
    #[must_use]
    pub fn new(knowledge: &'k Knowledge) -> Self {
        Self { knowledge, counts: BTreeMap::new(), edits: 0, depth: 0, keys: HashMap::new() }
    }

    /// A text of many lines: a log, metrics, a command's output. The number of lines stays the same.
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        lines::redact(self, text)
    }

    /// A Kubernetes object or any JSON document, in place.
    pub fn json(&mut self, value: &mut serde_json::Value) {
        // A mask may bring two words together that mean more than either did: until nothing changes, within a bound.
        for _ in 0..MAX_PASSES {
            let before = self.edits;
            self.walk(value);
            if self.edits == before {
                return;
            }
        }
    }

    /// The rule that makes a key's value a secret.
    fn judge_key(&mut self, key: &str) -> Option<&'k SecretName> {
        if let Some(known) = self.keys.get(key) {
            return *known;
        }
        let rule = name::judge(self.knowledge.names(), key, name::is_shouted(key));
        if self.keys.len() < MAX_KEYS {
            self.keys.insert(key.to_owned(), rule);
        }
        rule
    }

    /// How often each rule masked something, by its id.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// One masked.
    fn note(&mut self, id: &str) {
        self.edits += 1;
        spans::count(&mut self.counts, id);
    }

    /// One message without its wrapping.
    fn message<'t>(&mut self, text: &'t str, spans: &spans::Spans<'_>) -> Cow<'t, str> {
        let masked = spans::apply(text, spans, &mut self.counts);
        self.edits += u64::from(matches!(masked, Cow::Owned(_)));
        masked
    }
}

/// A line with secrets and user text masked.
#[must_use]
pub fn line<'t>(text: &'t str, knowledge: &Knowledge) -> Cow<'t, str> {
    spans::apply(text, &spans::find(knowledge, text), &mut BTreeMap::new())
}
