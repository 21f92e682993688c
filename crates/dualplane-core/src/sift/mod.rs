//! Sifts a log that is too large to hold: one pass keeps the lines that say something, with what stands around them.
//!
//! A region of the log goes through [`Sifter::part`], in any order and on any thread; [`Merge`] puts the parts together
//! and keeps their sum within a bound. What comes out reads like a log whose other lines were left out: every kept line
//! carries its number. Which lines say something follows from the literals of `knowledge/`; those that healthy servers
//! print all day (`knowledge/everyday.log`) do not select a line, they only stay where they stand near one.
//!
//! The pass looks at every fourth byte: a literal of seven bytes or more cannot hide between two looks (see `dualplane_grams`).

mod feed;
mod merge;
mod part;
mod reading;
mod words;

pub use crate::evidence::{MAX_LINE, Sifted, fold, is_folded, unfold};
pub use feed::{BLOCK, Feed, ends};
pub use merge::Merge;
pub use part::Part;
pub use reading::{Reading, reading};

use aho_corasick::AhoCorasick;
use dualplane_grams::Grams;

use self::words::{EVERYDAY, Worth, words};
use crate::knowledge::Knowledge;

/// What a region should hold before the lines that are its own, so that what stands before a find is there.
pub const BEFORE: usize = 16 << 10;
/// And behind them: the longest line.
pub const AFTER: usize = MAX_LINE;

/// Knows which lines to keep.
#[derive(Debug)]
pub struct Sifter {
    grams: Grams,
    /// Of all words; `worth` goes by its pattern numbers.
    automaton: AhoCorasick,
    worth: Vec<Worth>,
}

impl Sifter {
    /// A sifter for this knowledge.
    ///
    /// # Errors
    /// When the words do not compile, which the knowledge itself excludes.
    pub fn new(knowledge: &Knowledge) -> Result<Self, aho_corasick::BuildError> {
        let (words, worth) = words(knowledge);
        let automaton =
            AhoCorasick::builder().kind(Some(aho_corasick::AhoCorasickKind::ContiguousNFA)).build(&words)?;
        Ok(Self { grams: Grams::new(&words, EVERYDAY), automaton, worth })
    }
}
