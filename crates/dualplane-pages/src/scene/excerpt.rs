//! The lines around the first error, so that a person sees it where it stood.

use dualplane_base::text::{shorten, strip_ansi};
use dualplane_core::evidence::LogSource;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::{knowledge::Mark, redact};
use dualplane_report::Report;
use std::collections::BTreeMap;

/// Lines before the first error and behind it.
const BEFORE: usize = 6;
const BEHIND: usize = 40;
/// Characters of a line.
const LONGEST: usize = 2_000;

/// Lines of one log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Excerpt {
    /// The log.
    pub file: String,
    /// Its lines, in order.
    pub rows: Vec<Row>,
    /// Lines of the log behind the last of them.
    pub behind: u64,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its number in the file.
    pub number: u64,
    /// Its text.
    pub text: String,
    /// What it is to the verdict.
    pub kind: Kind,
    /// What it means, where a signature knows it.
    pub meaning: String,
}

/// What a line is to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It stands beside the others.
    Plain,
    /// The first error.
    First,
    /// It only notices the failure.
    Follows,
}

pub(super) fn of(report: &Report, knowledge: &Knowledge) -> Option<Excerpt> {
    let trigger = report.verdict.trigger.as_ref()?;
    let first = trigger.place.line?;
    let log = report.bundle.logs.iter().find(|l| l.name == trigger.place.file)?;
    let lines: Vec<(u64, String)> = numbered(log).collect();
    // A line of a stream may hold several that the container wrote: the one with the words of the first error.
    let holds = |text: &str| {
        text.contains(trigger.text.trim()) || trigger.text.contains(text.trim()) && !text.trim().is_empty()
    };
    let at = lines
        .iter()
        .position(|(n, text)| *n == first && holds(text))
        .or_else(|| lines.iter().position(|(n, _)| *n == first))?;
    let of_file = report.facts.hits.iter().filter(|h| h.place.file == log.name);
    let known: BTreeMap<u64, _> = of_file.filter_map(|h| Some((h.place.line?, h))).collect();
    let row = |(i, (number, text)): (usize, &(u64, String))| {
        let hit = known.get(number);
        let follows = hit.is_some_and(|h| matches!(h.mark, Mark::Cascade | Mark::Death));
        let kind = match () {
            () if i == at => Kind::First,
            () if i > at && follows => Kind::Follows,
            () => Kind::Plain,
        };
        let text = redact::line(text, knowledge).into_owned();
        let meaning = hit.filter(|_| kind != Kind::Plain).map(|h| h.meaning.clone()).unwrap_or_default();
        Row { number: *number, text: shorten(&text, LONGEST).into_owned(), kind, meaning }
    };
    let rows = lines
        .iter()
        .enumerate()
        .skip(at.saturating_sub(BEFORE))
        .take(BEHIND + BEFORE.min(at) + 1)
        .map(row)
        .collect();
    let behind = lines.len().saturating_sub(at.saturating_add(BEHIND + 1)) as u64;
    Some(Excerpt { file: log.name.clone(), rows, behind })
}

fn numbered(log: &LogSource) -> impl Iterator<Item = (u64, String)> {
    log.bytes.split(|b| *b == b'\n').enumerate().map(|(i, line)| {
        let number = log.numbers.as_ref().and_then(|n| n.get(i).copied()).unwrap_or(i as u64 + 1);
        (number, strip_ansi(&String::from_utf8_lossy(line)).into_owned())
    })
}
