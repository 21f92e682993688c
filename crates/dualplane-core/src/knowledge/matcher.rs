//! Finds the signatures that hold for a line: one pass for all literals, patterns only behind a hit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::level::level;
use super::literals::{Found, Literals};
use super::pattern;
use super::signature::{Mark, SigId, Signature, Text};
use super::spoken::is_spoken_of;
use super::words::STEMS;
use crate::units::{Bytes, parse_k8s_memory, parse_memory};

/// A named group of a pattern, read with its unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Capture {
    /// Memory.
    Memory(Bytes),
    /// A count, ratio, percentage, code.
    Number(f64),
    /// Anything else.
    Word(String),
}

/// A signature that holds for a line.
#[derive(Debug, Clone)]
pub struct Match {
    /// Which one.
    pub id: SigId,
    /// Byte offset in the line at which the literal or pattern begins.
    pub at: usize,
    /// Byte offset at which it ends.
    pub end: usize,
    /// Named groups.
    pub captures: BTreeMap<String, Capture>,
}

/// What is known of a line.
#[derive(Debug, Default)]
pub struct Known {
    /// The signatures that hold for it.
    pub matches: Vec<Match>,
    /// A text that a user wrote in it holds the words of an error, which proves nothing.
    pub quotes_error: bool,
    /// Its words may tell of a lack of memory or a lost card: they are worth reading.
    pub worth_reading: bool,
}

/// The literals of all signatures, and whose literal is whose: the signature, and which of its literals.
#[derive(Debug)]
pub(super) struct Matcher {
    literals: Literals,
    owner: Vec<(SigId, usize)>,
}

impl Matcher {
    pub(super) fn new(signatures: &[Signature]) -> Self {
        let all = signatures.iter().flat_map(|s| s.literals.iter()).map(AsRef::as_ref);
        // Behind those of the signatures, so that they have no owner.
        let all = all.chain(STEMS.iter().copied());
        let owner =
            (0..).zip(signatures).flat_map(|(i, s)| (0..s.literals.len()).map(move |n| (SigId(i), n)));
        Self { literals: Literals::new(all), owner: owner.collect() }
    }

    pub(super) fn known(&self, all: &[Signature], text: &str, near: impl Fn(&str) -> bool) -> Known {
        let mut found: Vec<Match> = Vec::new();
        let mut tried: Vec<SigId> = Vec::new();
        let mut worth_reading = false;
        self.literals.find(text.as_bytes(), |Found { number, at }| {
            let Some(&(id, literal)) = self.owner.get(number) else {
                let stem = number.checked_sub(self.owner.len()).and_then(|i| STEMS.get(i));
                let here = text.as_bytes().get(at..).unwrap_or_default();
                worth_reading |= stem.is_some_and(|s| here.starts_with(s.as_bytes()));
                return;
            };
            let Some(signature) = all.get(id.index()) else { return };
            let Some(literal) = signature.literals.get(literal) else { return };
            let whole = text.as_bytes().get(at..).is_some_and(|t| t.starts_with(literal.as_bytes()));
            if !whole || tried.contains(&id) {
                return;
            }
            tried.push(id);
            let held = holds(signature, id, text, at, at + literal.len(), &near);
            // The level of a line is looked for only where it matters.
            found.extend(
                held.filter(|_| signature.mark != Mark::Failure || !signature.unlike(level(text, at))),
            );
        });
        let quotes_error = drop_user_text(all, &mut found, text);
        // An error that a line only speaks of proves nothing.
        let proves = |m: &Match| {
            !matches!(mark(all, m), Some(Mark::Benign | Mark::Info | Mark::Phase | Mark::UserText))
        };
        found.retain(|m| !proves(m) || !is_spoken_of(text, m.at));
        // A benign line is no evidence: nothing else in it counts, except numbers and phases.
        if found.iter().any(|m| mark(all, m) == Some(Mark::Benign)) {
            found.retain(|m| matches!(mark(all, m), Some(Mark::Benign | Mark::Info | Mark::Phase)));
        }
        found.sort_by_key(|m| (m.at, m.id));
        Known { matches: found, quotes_error, worth_reading }
    }
}

fn mark(all: &[Signature], m: &Match) -> Option<Mark> {
    all.get(m.id.index()).map(|s| s.mark)
}

/// What a user wrote is no evidence: matches behind the end of a user-text mark go. Says whether an error was among them.
fn drop_user_text(all: &[Signature], found: &mut Vec<Match>, text: &str) -> bool {
    let Some(from) = found.iter().filter(|m| mark(all, m) == Some(Mark::UserText)).map(|m| m.end).min()
    else {
        return false;
    };
    let error = |m: &Match| m.at >= from && mark(all, m) == Some(Mark::Fatal) && !is_spoken_of(text, m.at);
    let quotes_error = found.iter().any(error);
    found.retain(|m| m.at < from && (m.end <= from || mark(all, m) == Some(Mark::UserText)));
    quotes_error
}

fn holds(
    s: &Signature,
    id: SigId,
    text: &str,
    start: usize,
    end: usize,
    near: &impl Fn(&str) -> bool,
) -> Option<Match> {
    if s.unless.iter().any(|u| text.contains(u.as_ref())) {
        return None;
    }
    if !s.context.is_empty() && !s.context.iter().any(|c| text.contains(c.as_ref()) || near(c)) {
        return None;
    }
    if s.pattern.is_none() {
        return Some(Match { id, at: start, end, captures: BTreeMap::new() });
    }
    let found = s.captures(text)?;
    let whole = found.get_match()?;
    let mut captures = BTreeMap::new();
    for (name, value) in pattern::groups(&found, text.as_bytes()) {
        let value = String::from_utf8_lossy(value);
        captures.insert(name.to_owned(), read(&value, s.unit(name)));
    }
    let equal = |[a, b]: &[Text; 2]| {
        captures.contains_key(a.as_ref()) && captures.get(a.as_ref()) == captures.get(b.as_ref())
    };
    if s.changed.as_ref().is_some_and(equal) || s.unchanged.as_ref().is_some_and(|g| !equal(g)) {
        return None;
    }
    Some(Match { id, at: whole.start(), end: whole.end(), captures })
}

fn read(value: &str, unit: Option<&str>) -> Capture {
    let word = || Capture::Word(value.chars().take(512).collect());
    let number =
        |v: &str| v.trim_end_matches('%').replace(',', "").parse::<f64>().ok().filter(|n| n.is_finite());
    match unit {
        Some("word") => word(),
        Some("tokens" | "count" | "ratio" | "percent" | "seconds") => {
            number(value).map_or_else(word, Capture::Number)
        }
        Some("k8s") => parse_k8s_memory(value).map_or_else(word, Capture::Memory),
        // A negative amount (vLLM prints the deficit before it refuses) stays a number of bytes below zero.
        Some(unit) => parse_memory(value, Some(unit)).map(Capture::Memory).unwrap_or_else(|| {
            match (number(value), crate::units::unit_bytes(unit)) {
                (Some(n), Some(f)) if (n * f).is_finite() => Capture::Number(n * f),
                _ => word(),
            }
        }),
        None => match number(value) {
            Some(n) => Capture::Number(n),
            None => parse_memory(value, None).map_or_else(word, Capture::Memory),
        },
    }
}
