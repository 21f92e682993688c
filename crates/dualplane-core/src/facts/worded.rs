//! An error that no entry knows and no traceback shows, judged by its words: the last line of an excerpt, a message on
//! standard error, a launcher's report. It counts only where nothing else in the log explains an end.

use super::trace::{exception_name, message_of};
use super::{Hit, Place};
use crate::knowledge::{Knowledge, Level, Mark, Match, Said, Signature, level};
use crate::time::Stamp;
use dualplane_base::Class;

/// Words with which programs begin or mark an error, beside their loggers' levels.
const MARKED: &[&str] = &[
    "Error: ",
    "Error using ",
    "rror! ",
    "rror:",
    "ERROR",
    "Exception",
    "[error]",
    "FATAL",
    "atal error",
    "fatal: ",
    "panicked at",
    " failed: ",
];
/// So far from its beginning a line says what it is.
const HEAD: usize = 120;

/// Such a line, until the log's end shows whether it counts.
#[derive(Debug)]
pub(super) struct Worded {
    pub(super) found: Match,
    pub(super) place: Place,
    pub(super) raw: String,
    pub(super) stamp: Option<Stamp>,
    pub(super) process: String,
}

/// What the words of an exception say.
pub(super) fn by_words<'k>(knowledge: &'k Knowledge, message: &str) -> Option<(&'k Signature, Match)> {
    let known = knowledge.known(message, |_| false);
    let m = of_words(knowledge, message, &known.matches, known.worth_reading)?.found;
    Some((knowledge.signature(m.id)?, m))
}

/// What words say of a line.
pub(super) struct Words {
    pub(super) found: Match,
    /// The sentence names a plane, or tells that something was killed.
    said: bool,
    act: bool,
}

/// What the words of a line say: by an entry that judges by words, or by their grammar. Where the two name different planes,
/// only that memory is meant.
pub(super) fn of_words(
    knowledge: &Knowledge,
    text: &str,
    matches: &[Match],
    worth_reading: bool,
) -> Option<Words> {
    let entry = |m: &&Match| knowledge.signature(m.id).filter(|s| s.of_exceptions());
    if !worth_reading && !matches.iter().any(|m| entry(&m).is_some()) {
        return None;
    }
    let of = |mark: Mark| matches.iter().find(|m| entry(m).is_some_and(|s| s.mark == mark)).cloned();
    let message = message_of(text);
    let before = text.len() - message.len();
    let read = knowledge.read(message).map(|(said, m, act)| {
        (
            said,
            Words {
                found: Match { at: m.at + before, end: m.end + before, ..m },
                said: !matches!(said, Said::Memory | Said::Several),
                act,
            },
        )
    });
    if matches!(read, Some((Said::Nothing, _))) {
        return None;
    }
    let class = |m: &Match| knowledge.signature(m.id).and_then(|s| s.class);
    match (of(Mark::Fatal), read) {
        (Some(_), Some((Said::Several, words))) => Some(words),
        (Some(m), Some((said, words))) if said != Said::Memory => {
            let same = class(&m).map(Class::plane) == class(&words.found).map(Class::plane);
            let unsaid = || of(Mark::Death).map(|found| Words { found, said: false, act: words.act });
            // The cache is in the card's memory, and its lack is told apart by the sentence alone.
            if same && said != Said::KvCache {
                Some(Words { found: m, ..words })
            } else if same {
                Some(words)
            } else {
                unsaid()
            }
        }
        (Some(found), _) => Some(Words { found, said: false, act: false }),
        (None, Some((_, words))) => Some(words),
        (None, None) => of(Mark::Death).map(|found| Words { found, said: false, act: false }),
    }
}

impl Words {
    /// Whether the line is an error by itself, so that its words count; a record tells its level beside the message.
    pub(super) fn is_error(&self, text: &str, record: Option<Level>) -> bool {
        self.act || record.map_or_else(|| is_error(text, self.found.at, self.said), |l| l == Level::Error)
    }
}

/// Whether a line is an error by itself: an exception's message, a line at the level of errors, or one that begins with the
/// words of which it was judged, or a sentence that says by its grammar what happened to which memory.
fn is_error(text: &str, words_at: usize, said: bool) -> bool {
    let message = message_of(text);
    // Frames and source lines of a traceback are indented; so is what C++ prints of an exception that nobody caught.
    if message.starts_with([' ', '\t']) && !message.trim_start().starts_with("what():") {
        return false;
    }
    let head = text.char_indices().nth(HEAD).map_or(text, |(end, _)| text.get(..end).unwrap_or(text));
    match level(text, words_at) {
        Some(Level::Quiet) => false,
        Some(Level::Error) => true,
        None => {
            said || words_at == 0
                || exception_name(message).is_some()
                || MARKED.iter().any(|w| head.contains(w))
                || of_a_program(message)
                // Ruby writes the class behind the message.
                || text.trim_end().ends_with("Error)")
        }
    }
}

/// `qemu-system-x86_64: cannot set up …`: a program begins what it says on standard error with its own name.
fn of_a_program(message: &str) -> bool {
    message.split_once(": ").is_some_and(|(name, _)| {
        let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'.');
        (2..=32).contains(&name.len())
            && name.bytes().all(lower)
            && name.starts_with(|c: char| c.is_ascii_lowercase())
    })
}

/// Whether a hit tells how its process fared, so that words need not be asked.
pub(super) fn explains(hit: &Hit) -> bool {
    matches!(hit.mark, Mark::Fatal | Mark::Degraded | Mark::Suspect | Mark::Failure)
}

#[cfg(test)]
mod tests {
    use super::is_error;

    #[test]
    fn errors_by_themselves() {
        for (line, is) in [
            ("RuntimeError: Insufficient VRAM for model and cache", true),
            ("2026-08-24 10:11:43,221 worker 412 ERROR    Batch inference out of memory.", true),
            ("time=\"2026-07-11T09:10:11Z\" level=error msg=\"no room\"", true),
            ("    raise RuntimeError(\"Insufficient VRAM\")", false),
            ("INFO: the VRAM is large enough", false),
            ("lua: not enough memory is left for the interpreter", true),
            ("a note on memory: not enough of it is a problem", false),
            ("WARNING: VRAM may not be enough", false),
            ("WARNING 11-22 18:16:33 [m.py:1] Error: VRAM may not be enough", false),
        ] {
            assert_eq!(is_error(line, 40, false), is, "{line}");
        }
    }
}
