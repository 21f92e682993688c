//! Which lines of a text are worth reading, which are a log's, and which belong to the object around a scrap.

use memchr::memmem::Finder;

use super::MAX_LINE;
use super::field::Field;
use super::pairs::pairs;
use crate::evidence::prose;

/// Lines around an anchor, or a state in a larger text.
const REACH: usize = 40;
/// One of these stands in or near every line that has something to read, in the cases in which tools and people write.
const ANCHORS: &[&str] = &[
    "OOM",
    "oom",
    "Oom",
    "0OM",
    "O0M",
    "00M",
    "xit",
    "EXIT",
    "eason",
    "REASON",
    "erminated",
    "ast State",
    "ast state",
    "astState",
    "CrashLoop",
    "Warning ",
    "Normal ",
    "out of memory",
    "OutOfMemory",
    "out of VRAM",
    "low on resource",
];

/// The lines that are worth reading.
pub(super) fn lines(lines: &[&str], large: bool, asked: bool) -> Vec<usize> {
    if asked && !large {
        return (0..lines.len()).collect();
    }
    let anchors: Vec<Finder<'_>> = ANCHORS.iter().map(Finder::new).collect();
    let small = |l: &str| anchors.iter().any(|a| a.find(l.as_bytes()).is_some());
    let states = |l: &str| {
        let l = l.trim_start_matches([' ', '"', '>', '-']);
        ["Last State:", "State:  ", "lastState", "terminated"].iter().any(|s| l.starts_with(s))
    };
    let mut out: Vec<usize> = Vec::new();
    let worth = |l: &str| l.len() <= MAX_LINE && !is_levelled(l);
    for (i, line) in lines.iter().enumerate().filter(|(_, l)| worth(l)) {
        if if large { states(line) } else { small(line) } {
            let from = out.last().map_or(0, |l| l + 1).max(i.saturating_sub(REACH));
            out.extend(from..(i + REACH).min(lines.len()));
        }
    }
    out
}

/// A line begins with a level or an engine's process: most lines of most logs, known at a glance.
pub(super) fn is_levelled(line: &str) -> bool {
    const BEGINS: [&str; 9] =
        ["INFO", "WARN", "ERROR", "DEBUG", "CRITICAL", "TRACE", "(EngineCore", "(APIServer", "(Worker"];
    let line = line.trim_start();
    BEGINS.iter().any(|b| line.starts_with(b))
}

/// Lines of the same object around those that were read are no log, either; of a text that is mostly an object, none is.
pub(super) fn around(lines: &[&str], taken: &mut Vec<usize>) {
    let mut all = vec![false; lines.len()];
    for i in taken.iter() {
        all.iter_mut().skip(*i).take(1).for_each(|t| *t = true);
    }
    let of_object: Vec<bool> = lines.iter().map(|l| l.len() <= MAX_LINE && is_of_object(l)).collect();
    let written = lines.iter().filter(|l| !l.trim().is_empty()).count();
    if of_object.iter().filter(|o| **o).count() * 2 > written {
        for (t, line) in all.iter_mut().zip(lines) {
            *t |= !prose::logs(line);
        }
    } else {
        for i in taken.iter().copied() {
            let mut mark = |j: usize| match (of_object.get(j), all.get_mut(j)) {
                // Each line is claimed once, so that this takes one pass in all.
                (Some(true), Some(t)) if !*t => {
                    *t = true;
                    true
                }
                _ => false,
            };
            (0..i).rev().find(|j| !mark(*j));
            (i + 1..lines.len()).find(|j| !mark(*j));
        }
    }
    *taken = all.iter().enumerate().filter(|(_, t)| **t).map(|(i, _)| i).collect();
}

/// `  ready: false`, `"image": "x",`, `},`, `Ready:          True`: a line of YAML, JSON or a description.
fn is_of_object(line: &str) -> bool {
    let bare =
        line.trim_start_matches(|c: char| " >|│*-•\t\"'{[".contains(c)).trim_end_matches([' ', '│', '|']);
    if bare.is_empty() || bare.chars().all(|c| "{}[],".contains(c)) {
        return !line.trim().is_empty();
    }
    let Some((key, value)) = bare.split_once(':') else { return false };
    let key = key.trim_end_matches(['"', '\'']);
    let joined = value.is_empty() || value.starts_with([' ', '"', '{', '[']);
    let plain = key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'/' | b'_' | b'-'));
    let described =
        key.starts_with(|c: char| c.is_ascii_uppercase()) && key.len() <= 24 && value.starts_with("  ");
    joined && (plain || described)
}

/// A record of a log as JSON says of others what it says.
pub(super) fn is_record(line: &str) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|k| line.contains(k));
    line.trim_start().starts_with('{')
        && (has(&["\"msg\"", "\"level\"", "\"log\"", "\"severity\"", "\"ts\""])
            // A state has a message, too.
            || has(&["\"message\":"]) && !has(&["\"terminated\"", "\"exitCode\""]))
}

/// A line of a log speaks of its own matters. A status has times, too, but they stand behind a label.
pub(super) fn is_logged(bare: &str, raw: &str) -> bool {
    let found = pairs(bare);
    let state =
        found.iter().any(|p| matches!(p.field, Field::LastState | Field::Terminated | Field::ExitCode));
    let labelled = raw.trim_start().starts_with('{')
        || state && found.len() > 3
        || found.first().is_some_and(|p| bare.get(..p.start).is_some_and(|b| b.trim().is_empty()))
        || bare.starts_with("map ");
    // Times further in are values.
    let begin = bare.char_indices().nth(48).and_then(|(i, _)| bare.get(..i)).unwrap_or(bare);
    !labelled && prose::logs(begin)
}
