//! Where a word may stand, by looking at every fourth byte only.
//!
//! Of each word a window of seven bytes is chosen. At whatever place it stands, one of its four runs of four bytes begins
//! at a multiple of four: those four runs are put into a Bloom filter of two tables, and the pass asks the filter for the
//! four bytes at each multiple of four. Windows are chosen whose runs are rare in what healthy servers print.
//! (q-grams with a stride, as in Wu and Manber, "A fast algorithm for multi-pattern searching", 1994.)

use std::collections::{HashMap, HashSet};

use super::words::EVERYDAY;

/// Bytes of a run, and distance of two looks.
const RUN: usize = 4;
/// Bytes in which a run at a multiple of four must lie.
const WINDOW: usize = 2 * RUN - 1;
/// The shortest word: one byte less than a window, the byte before it being any byte of a text.
pub(super) const MIN_WORD: usize = WINDOW - 1;
/// 2^18 bits a table: both fit the first-level cache beside the text, and some thousand runs fill 2 % of each.
const BITS: u32 = 18;
const CELLS: usize = 1 << (BITS - 6);

/// The filter.
#[derive(Debug)]
pub(super) struct Grams {
    first: Box<[u64]>,
    second: Box<[u64]>,
}

impl Grams {
    pub(super) fn new(words: &[String]) -> Self {
        let mut common: HashMap<[u8; RUN], u32> = HashMap::new();
        for run in EVERYDAY.as_bytes().windows(RUN) {
            *common.entry(run.try_into().unwrap_or_default()).or_default() += 1;
        }
        let mut runs: HashSet<u32> = HashSet::new();
        for word in words {
            if word.len() == MIN_WORD {
                for before in (b' '..=b'~').chain([b'\n', b'\t', 0x1b, b'\r']) {
                    runs.extend(runs_of(&[&[before], word.as_bytes()].concat()));
                }
                continue;
            }
            let cost = |w: &&[u8]| -> u32 {
                w.windows(RUN).map(|r| common.get(r).copied().unwrap_or(0)).sum()
            };
            if let Some(window) = word.as_bytes().windows(WINDOW).min_by_key(cost) {
                runs.extend(runs_of(window));
            }
        }
        let mut grams = Self { first: vec![0; CELLS].into(), second: vec![0; CELLS].into() };
        for run in runs {
            for (table, place) in [(&mut grams.first, first(run)), (&mut grams.second, second(run))] {
                if let Some(cell) = table.get_mut(place >> 6) {
                    *cell |= 1 << (place & 63);
                }
            }
        }
        grams
    }

    /// Whether a word may stand around these four bytes.
    #[inline]
    pub(super) fn may(&self, run: [u8; RUN]) -> bool {
        let run = u32::from_le_bytes(run);
        let place = first(run);
        let hit = |table: &[u64], place: usize| {
            table.get((place >> 6) & (CELLS - 1)).is_some_and(|cell| cell >> (place & 63) & 1 == 1)
        };
        hit(&self.first, place) && hit(&self.second, second(run))
    }
}

fn runs_of(window: &[u8]) -> impl Iterator<Item = u32> {
    window.windows(RUN).map(|r| u32::from_le_bytes(r.try_into().unwrap_or_default()))
}

#[inline]
fn first(run: u32) -> usize {
    (run.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

#[inline]
fn second(run: u32) -> usize {
    ((run ^ run >> 15).wrapping_mul(0x85eb_ca6b) >> (32 - BITS)) as usize
}
