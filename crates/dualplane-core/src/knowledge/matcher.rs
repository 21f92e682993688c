//! Finds the signatures that hold for a line: one pass of a multi-literal automaton, patterns only behind a hit.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::Serialize;

use super::level::level;
use super::signature::{Mark, SigId, Signature};
use super::spoken::is_spoken_of;
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

/// As much of a literal is in the automaton; the rest is compared where that is found. Every start of the program builds it,
/// and its states are what that costs.
const HEAD: usize = 10;

/// The automaton of the literals' heads, and whose literal is whose: the signature, and which of its literals.
#[derive(Debug)]
pub(super) struct Matcher {
    automaton: AhoCorasick,
    owner: Vec<(SigId, usize)>,
}

impl Matcher {
    pub(super) fn new(signatures: &[Signature]) -> Result<Self, aho_corasick::BuildError> {
        let mut literals = Vec::new();
        let mut owner = Vec::new();
        for (i, s) in signatures.iter().enumerate() {
            for (n, literal) in s.literals.iter().enumerate() {
                let bytes = literal.as_bytes();
                literals.push(bytes.get(..HEAD).unwrap_or(bytes));
                owner.push((SigId(u32::try_from(i).unwrap_or(u32::MAX)), n));
            }
        }
        // Overlapping search needs the standard kind; the contiguous NFA builds in well under a millisecond.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&literals)?;
        Ok(Self { automaton, owner })
    }

    pub(super) fn matches(&self, all: &[Signature], text: &str, near: impl Fn(&str) -> bool) -> Vec<Match> {
        let mut found: Vec<Match> = Vec::new();
        let mut tried: Vec<SigId> = Vec::new();
        for hit in self.automaton.find_overlapping_iter(text) {
            let Some(&(id, literal)) = self.owner.get(hit.pattern().as_usize()) else { continue };
            let Some(signature) = all.get(id.index()) else { continue };
            let Some(literal) = signature.literals.get(literal) else { continue };
            let whole = text.as_bytes().get(hit.start()..).is_some_and(|t| t.starts_with(literal.as_bytes()));
            if !whole || tried.contains(&id) {
                continue;
            }
            tried.push(id);
            let end = hit.start() + literal.len();
            if let Some(m) = holds(signature, id, text, hit.start(), end, &near)
                && !(signature.mark == Mark::Failure && signature.unlike(level(text, hit.start())))
            {
                found.push(m);
            }
        }
        drop_user_text(all, &mut found);
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
        found
    }
}

fn mark(all: &[Signature], m: &Match) -> Option<Mark> {
    all.get(m.id.index()).map(|s| s.mark)
}

/// What a user wrote is no evidence: matches behind the end of a user-text mark go.
fn drop_user_text(all: &[Signature], found: &mut Vec<Match>) {
    let from = found.iter().filter(|m| mark(all, m) == Some(Mark::UserText)).map(|m| m.end).min();
    if let Some(from) = from {
        found.retain(|m| m.at < from && (m.end <= from || mark(all, m) == Some(Mark::UserText)));
    }
}

fn holds(
    s: &Signature,
    id: SigId,
    text: &str,
    start: usize,
    end: usize,
    near: &impl Fn(&str) -> bool,
) -> Option<Match> {
    if s.unless.iter().any(|u| text.contains(u.as_str())) {
        return None;
    }
    if !s.context.is_empty() && !s.context.iter().any(|c| text.contains(c.as_str()) || near(c)) {
        return None;
    }
    if s.pattern.is_none() {
        return Some(Match { id, at: start, end, captures: BTreeMap::new() });
    }
    let regex = s.regex()?;
    let groups = regex.captures(text.as_bytes())?;
    let whole = groups.get(0)?;
    let mut captures = BTreeMap::new();
    for name in regex.capture_names().flatten() {
        if let Some(group) = groups.name(name) {
            let value = String::from_utf8_lossy(group.as_bytes());
            captures.insert(name.to_owned(), read(&value, s.units.get(name).map(String::as_str)));
        }
    }
    let equal = |[a, b]: &[String; 2]| captures.contains_key(a) && captures.get(a) == captures.get(b);
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
