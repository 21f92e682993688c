//! Where a word may stand, by looking at every fourth byte only.
//!
//! Of each word a window of seven bytes is chosen. At whatever place it stands, one of its four runs of four bytes begins
//! at a multiple of four: those four runs are put into a filter, and the pass asks the filter for the four bytes at each
//! multiple of four. Where it says yes, the window itself is compared. Windows are chosen that are rare, and whose runs
//! are rare, in what healthy servers print.
//! (q-grams with a stride, as in Wu and Manber, "A fast algorithm for multi-pattern searching", 1994.)
//!
//! Every byte of a log goes through [`Places::next`], and through nothing else of ours: it is a crate of its own so that this
//! alone is compiled for speed in what is published, and the rest for size.
//!
//! Like the core it is pure: no I/O, no clock, no environment.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

use std::collections::HashMap;
use std::ops::Range;

/// Bytes of a run, and distance of two looks.
const RUN: usize = 4;
/// Bytes in which a run at a multiple of four must lie.
const WINDOW: usize = 2 * RUN - 1;
/// The shortest word: one byte less than a window, the byte before it being any.
pub const MIN_WORD: usize = WINDOW - 1;
/// 2^18 bits: they fit the first-level cache beside the text, and some thousand runs fill 2 % of them.
const BITS: u32 = 18;
const CELLS: usize = 1 << (BITS - 6);
/// Buckets of the windows: about one run in each.
const BUCKET_BITS: u32 = 13;

/// A run of a word's window.
#[derive(Debug, Clone, Copy)]
struct Run {
    bytes: u32,
    /// Where the window begins, counted from the run: 0 to 3 bytes before it, or one behind for the shortest words.
    from: isize,
    window: [u8; WINDOW],
    /// Bytes of the window that count.
    len: usize,
}

/// The filter and the windows behind it.
#[derive(Debug)]
pub struct Grams {
    filter: Box<[u64]>,
    /// By bucket; those of bucket `b` are `starts[b]..starts[b + 1]`.
    runs: Vec<Run>,
    starts: Vec<u32>,
}

impl Grams {
    /// For words of at least [`MIN_WORD`] bytes; shorter ones are not found. `everyday` is what healthy servers print: windows
    /// that are rare in it are chosen.
    #[must_use]
    pub fn new(words: &[String], everyday: &str) -> Self {
        let common4 = counts::<RUN>(everyday);
        let common7 = counts::<WINDOW>(everyday);
        let mut runs: Vec<Run> = Vec::new();
        for word in words.iter().map(String::as_bytes) {
            if word.len() == MIN_WORD {
                for before in 0..=u8::MAX {
                    runs_of(&[&[before], word].concat(), 1, &mut runs);
                }
                continue;
            }
            let cost = |w: &&[u8]| {
                let runs = w.windows(RUN).map(|r| common4.get(r).copied().unwrap_or(0)).sum::<u32>();
                (common7.get(*w).copied().unwrap_or(0), runs)
            };
            if let Some(window) = word.windows(WINDOW).min_by_key(cost) {
                runs_of(window, 0, &mut runs);
            }
        }
        runs.sort_by_key(|r| (bucket(r.bytes), r.bytes, r.from, r.window));
        runs.dedup_by_key(|r| (r.bytes, r.from, r.window));
        let mut filter = vec![0_u64; CELLS];
        let mut starts = vec![0_u32; (1 << BUCKET_BITS) + 1];
        for run in &runs {
            let place = hash(run.bytes);
            if let Some(cell) = filter.get_mut(place >> 6) {
                *cell |= 1 << (place & 63);
            }
            if let Some(start) = starts.get_mut(bucket(run.bytes) + 1) {
                *start += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Self { filter: filter.into(), runs, starts }
    }

    /// Places in a range of a region where a word may stand.
    #[must_use]
    pub fn places<'a>(&'a self, region: &'a [u8], own: Range<usize>) -> Places<'a> {
        let own = own.start.min(region.len())..own.end.min(region.len());
        Places { grams: self, region, at: own.start, end: own.end, from: own.start }
    }

    /// Whether the filter knows these four bytes.
    #[inline]
    fn may(&self, run: [u8; RUN]) -> bool {
        let place = hash(u32::from_le_bytes(run));
        self.filter.get((place >> 6) & (CELLS - 1)).is_some_and(|cell| cell >> (place & 63) & 1 == 1)
    }

    /// Where a window of a word begins whose run lies at `at`; not before `least`.
    fn window(&self, text: &[u8], at: usize, least: usize) -> Option<usize> {
        let run = u32::from_le_bytes(text.get(at..at + RUN)?.try_into().ok()?);
        let bucket = bucket(run);
        let range = *self.starts.get(bucket)? as usize..*self.starts.get(bucket + 1)? as usize;
        self.runs.get(range)?.iter().filter(|r| r.bytes == run).find_map(|r| {
            let from = at.checked_add_signed(r.from).filter(|from| *from >= least)?;
            (text.get(from..from + r.len)? == r.window.get(..r.len)?).then_some(from)
        })
    }
}

/// Goes through a range. A place is where a window of a word begins: the word stands around it, if it stands there.
#[derive(Debug)]
pub struct Places<'a> {
    grams: &'a Grams,
    region: &'a [u8],
    /// Where the next look is.
    at: usize,
    end: usize,
    /// Places before this do not count.
    from: usize,
}

impl Places<'_> {
    /// Leaves out what lies before this place.
    pub fn skip_to(&mut self, from: usize) {
        self.from = from;
    }
}

impl Iterator for Places<'_> {
    type Item = usize;

    // A caller that is made small must not take it in.
    #[inline(never)]
    fn next(&mut self) -> Option<usize> {
        let text = self.region.get(self.at..self.end).unwrap_or_default();
        let (grams, begin) = (self.grams, self.at);
        for (i, run) in text.as_chunks::<RUN>().0.iter().enumerate() {
            if !grams.may(*run) {
                continue;
            }
            let at = begin + RUN * i;
            if let Some(place) = grams.window(self.region, at, self.from) {
                self.at = at + RUN;
                return Some(place);
            }
        }
        self.at = self.end;
        None
    }
}

/// How often each run of so many bytes stands in what healthy servers print.
fn counts<const N: usize>(everyday: &str) -> HashMap<&[u8], u32> {
    let mut counts = HashMap::new();
    for run in everyday.as_bytes().windows(N) {
        *counts.entry(run).or_default() += 1;
    }
    counts
}

/// The runs of a window whose first `free` bytes may be any.
fn runs_of(window: &[u8], free: usize, out: &mut Vec<Run>) {
    let mut kept = [0; WINDOW];
    let bound = window.get(free..).unwrap_or_default();
    kept.iter_mut().zip(bound).for_each(|(to, from)| *to = *from);
    for (at, bytes) in window.windows(RUN).enumerate() {
        let Ok(bytes) = bytes.try_into() else { continue };
        let from = free as isize - at as isize;
        out.push(Run { bytes: u32::from_le_bytes(bytes), from, window: kept, len: bound.len() });
    }
}

#[inline]
fn hash(run: u32) -> usize {
    (run.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

fn bucket(run: u32) -> usize {
    hash(run) >> (BITS - BUCKET_BITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_words_are_found_behind_any_byte_and_others_not_at_all() {
        let grams = Grams::new(&["killed".to_owned(), "oom".to_owned()], "");
        for before in 0..8 {
            let text = format!("{}killed oom", " ".repeat(before + 1));
            assert!(grams.places(text.as_bytes(), 0..text.len()).next().is_some(), "{text:?}");
        }
        assert_eq!(grams.places(b"an oom of an oom in an oom", 0..26).next(), None);
    }

    proptest! {
        /// Whatever stands around a word, and wherever the range begins: some place touches the word.
        #[test]
        fn a_word_cannot_hide(
            words in proptest::collection::vec("[a-d ]{6,12}", 1..5),
            which in 0_usize..5,
            before in "[a-d \n]{1,40}",
            after in "[a-d \n]{0,40}",
            from in 0_usize..8,
        ) {
            let word = &words[which % words.len()];
            let grams = Grams::new(&words, "abcdabcd dddd abca");
            let text = format!("{before}{word}{after}");
            let (at, from) = (before.len(), from.min(before.len()));
            let mut places = grams.places(text.as_bytes(), from..text.len());
            let touches = |p: usize| p < at + word.len() && at < p + WINDOW;
            prop_assert!(places.any(touches), "{:?} in {:?}", word, text);
        }
    }
}
