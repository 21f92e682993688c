//! What is masked in one message: secrets by their shape, what is assigned to secret names, and where a user's text begins.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::assign;
use super::name::{MASK, is_mask};
use crate::facts::quote;
use crate::knowledge::Knowledge;
use crate::knowledge::Owner;

/// The id under which user text is counted.
pub(super) const USER: &str = "user_text";

/// A part of a message that must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span<'k> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) id: &'k str,
}

/// All of them in a message.
#[derive(Debug, Default)]
pub(super) struct Spans<'k> {
    /// In order, none touching another.
    pub(super) secrets: Vec<Span<'k>>,
    /// From here to the end a user speaks.
    pub(super) user: Option<usize>,
    /// A key of JSON stands in it that only a reader of JSON can judge.
    pub(super) keys: bool,
}

impl Spans<'_> {
    /// Nothing to mask, and nothing to look at more closely.
    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.user.is_none() && !self.keys
    }
}

/// What one automaton over the message leaves to look at.
pub(super) fn find<'k>(knowledge: &'k Knowledge, text: &str) -> Spans<'k> {
    let Some(gate) = knowledge.gate() else {
        // Without its literals nothing can be told apart: nothing may leave. A test excludes it for embedded knowledge.
        return Spans { user: Some(0), ..Spans::default() };
    };
    let mut out = Spans::default();
    let mut shapes: Vec<usize> = Vec::new();
    let mut users: Vec<usize> = Vec::new();
    // Names are looked at in turn, and none inside what the one before it assigns.
    let mut done = 0;
    for hit in gate.hits(text) {
        match hit.owner {
            Owner::Shape(i) if !shapes.contains(&i) => shapes.push(i),
            Owner::Key => out.keys = true,
            Owner::User(i) if !users.contains(&i) => users.push(i),
            Owner::Name if hit.start >= done => {
                let found = assign::at(knowledge.names(), text, (hit.start, hit.end));
                done = found.name_end.max(hit.end);
                for (start, end) in found.values {
                    done = done.max(end);
                    out.secrets.push(Span { start, end, id: found.id });
                }
            }
            _ => {}
        }
    }
    for rule in shapes.into_iter().filter_map(|i| knowledge.redactions().get(i)) {
        rule.each(text, |start, end| out.secrets.push(Span { start, end, id: &rule.id }));
    }
    for i in users {
        user_text(knowledge, i, text, &mut out);
    }
    merge(&mut out.secrets);
    out
}

fn user_text<'k>(knowledge: &'k Knowledge, index: usize, text: &str, out: &mut Spans<'k>) {
    let Some(s) = knowledge.signatures().get(index) else { return };
    // The automaton knows no case, the signature does.
    let literal = s.literals.iter().filter_map(|l| Some(text.find(l.as_ref())? + l.len())).min();
    let Some(literal) = literal.filter(|_| !s.unless.iter().any(|u| text.contains(u.as_ref()))) else {
        return;
    };
    let end = match &s.pattern {
        None => Some(literal),
        Some(_) => s.captures(text).and_then(|c| c.get_match()).map(|m| m.end()),
    };
    let Some(end) = end.filter(|e| text.is_char_boundary(*e)) else { return };
    let Some(until) = &s.until else {
        out.user = Some(out.user.map_or(end, |u| u.min(end)));
        return;
    };
    let rest = text.get(end..).unwrap_or_default();
    let own = rest.rfind(until.as_ref()).map_or(rest, |i| rest.get(..i).unwrap_or(rest));
    // A path of plain words is the server's; what stands behind it, or anything else, is the user's.
    let path = own
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-'))
        .count();
    let plain = path <= 64 && own.starts_with('/') && matches!(own.as_bytes().get(path), None | Some(b'?'));
    let from = if plain { (path + 1).min(own.len()) } else { 0 };
    if own.get(from..).is_some_and(|o| !o.is_empty() && !is_mask(o)) {
        out.secrets.push(Span { start: end + from, end: end + own.len(), id: USER });
    }
}

/// Parts that touch become one, with the id of the first.
fn merge(spans: &mut Vec<Span<'_>>) {
    spans.sort_unstable();
    let mut kept: Vec<Span<'_>> = Vec::with_capacity(spans.len());
    for s in spans.drain(..) {
        match kept.last_mut() {
            Some(last) if s.start < last.end => last.end = last.end.max(s.end),
            _ => kept.push(s),
        }
    }
    *spans = kept;
}

/// The message with everything masked.
pub(super) fn apply<'t>(
    text: &'t str,
    spans: &Spans<'_>,
    counts: &mut BTreeMap<String, u64>,
) -> Cow<'t, str> {
    let stop = spans.user.unwrap_or(text.len());
    let mut out = String::new();
    let mut from = 0;
    for s in spans.secrets.iter().filter(|s| s.start < stop) {
        // A secret that reaches into user text goes with it.
        let end = s.end.min(stop);
        if text.get(s.start..end).is_none_or(is_mask) {
            continue;
        }
        count(counts, s.id);
        out.push_str(text.get(from..s.start).unwrap_or_default());
        push_mask(&mut out, s.id);
        from = end;
    }
    let tail = spans.user.and_then(|u| text.get(u..)).and_then(|t| user_tail(text, stop, t));
    match tail {
        Some(tail) => {
            count(counts, USER);
            out.push_str(text.get(from..stop).unwrap_or_default());
            out.push_str(&tail);
        }
        None if from == 0 && out.is_empty() => return Cow::Borrowed(text),
        None => out.push_str(text.get(from..).unwrap_or_default()),
    }
    Cow::Owned(out)
}

/// What stands for a user's text; `None` where it stands there already. The quote that it opens is closed again, so that no
/// reader looks for its end in the lines behind.
fn user_tail(text: &str, from: usize, tail: &str) -> Option<String> {
    if tail.trim().is_empty() {
        return None;
    }
    let mut new = String::new();
    let quote = quote::quote_at(text, from).map(|(q, _)| q);
    let before = text.get(..from).unwrap_or_default();
    if let Some(q) = quote.filter(|q| !before.ends_with(*q)) {
        new.push_str(tail.get(..tail.len() - tail.trim_start().len()).unwrap_or_default());
        new.push(q);
    }
    push_mask(&mut new, USER);
    new.extend(quote);
    (new != tail).then_some(new)
}

pub(super) fn push_mask(out: &mut String, id: &str) {
    out.push_str(MASK);
    out.push_str(id);
    out.push(']');
}

pub(super) fn count(counts: &mut BTreeMap<String, u64>, id: &str) {
    match counts.get_mut(id) {
        Some(n) => *n += 1,
        None => {
            counts.insert(id.to_owned(), 1);
        }
    }
}
