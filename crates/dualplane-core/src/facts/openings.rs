//! The words by which the readers of this room know a line that is theirs, beside the signatures of `knowledge/`.
//!
//! Each reader keeps its own and goes by them; what sifts a log that is too large to hold keeps the lines that have one
//! of them (`sift/words.rs`). So a reader that looks for a new word is served in large logs as in small ones.

use super::{kernel_oom, lines, scan, trace, xid};

/// Lines behind an error in which its numbers, hints and frames stand.
pub(crate) const BEHIND_AN_ERROR: u32 = 48;

/// A word without which a reader passes a line by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    /// As it stands in the line; six bytes or more, or no sifting can find it.
    pub(crate) word: &'static str,
    /// With this directly behind it, it is another word.
    pub(crate) unless: Option<&'static str>,
    /// How much it matters where there is no room for all: 3 a cause, 2 what follows of one, 1 numbers, 0 a thing to count.
    pub(crate) rank: u8,
    /// How many lines behind it the reader needs.
    pub(crate) after: u32,
}

impl Opening {
    pub(crate) const fn new(word: &'static str, rank: u8, after: u32) -> Self {
        Self { word, unless: None, rank, after }
    }

    pub(crate) const fn unless(self, behind: &'static str) -> Self {
        Self { unless: Some(behind), ..self }
    }

    /// Whether the text has the word.
    pub(crate) fn stands_in(&self, text: &str) -> bool {
        match self.unless {
            None => text.contains(self.word),
            Some(other) => text.match_indices(self.word).any(|(at, word)| {
                !text.get(at + word.len()..).is_some_and(|behind| behind.starts_with(other))
            }),
        }
    }
}

/// Whether the text has one of them.
pub(crate) fn any(openings: &[Opening], text: &str) -> bool {
    openings.iter().any(|o| o.stands_in(text))
}

/// Those of all readers.
pub(crate) fn all() -> impl Iterator<Item = &'static Opening> {
    [
        lines::ENDS,
        lines::DRIVER,
        lines::LISTINGS,
        trace::HEADINGS,
        kernel_oom::RECORDS,
        xid::OPENINGS,
        scan::FAILED_ANSWERS,
    ]
    .into_iter()
    .flatten()
}
