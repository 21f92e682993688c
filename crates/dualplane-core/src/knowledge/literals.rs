//! Finds which of thousands of literals stand in a line, with tables that take no time to build.
//!
//! An automaton over all literals reads a line a little faster than this and takes milliseconds to build, which each start of
//! the program would pay: most read a few hundred lines. Here the first four bytes of each literal are put into a filter of
//! bits; each place of a line asks the filter, and where it says yes, literals of these four bytes are compared.

use dualplane_base::order::Order as _;

/// Bytes of a literal by which it is looked for.
const HEAD: usize = 4;
/// 2^15 bits are 4 KiB, which stay in the first-level cache; a thousand heads fill 3 % of them.
const BITS: u32 = 15;
const CELLS: usize = 1 << (BITS - 6);
/// Buckets of heads: about one head in each.
const BUCKET_BITS: u32 = 10;

/// One literal: its first eight bytes, and its number.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    mask: u64,
    number: u32,
}

/// The filter and the literals behind it.
#[derive(Debug)]
pub(super) struct Literals {
    filter: Box<[u64]>,
    /// By bucket, in the order in which they were given; those of bucket `b` are `starts[b]..starts[b + 1]`.
    entries: Vec<Entry>,
    starts: Vec<u32>,
    /// Numbers of those too short for a head; the embedded knowledge has none.
    short: Vec<(u32, Box<[u8]>)>,
}

/// Where a literal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Which one, by the order in which they were given.
    pub(super) number: usize,
    pub(super) at: usize,
}

impl Literals {
    pub(super) fn new<'a>(literals: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut filter = vec![0_u64; CELLS];
        let mut starts = vec![0_u32; (1 << BUCKET_BITS) + 1];
        let mut short = Vec::new();
        let mut sorted = Vec::new();
        for (number, literal) in (0..).zip(literals) {
            let Some(head) = head(literal.as_bytes()) else {
                short.push((number, literal.as_bytes().into()));
                continue;
            };
            let place = hash(head);
            if let Some(cell) = filter.get_mut(place >> 6) {
                *cell |= 1 << (place & 63);
            }
            let (start, mask) = eight(literal.as_bytes());
            sorted.push((bucket(place), Entry { start, mask, number }));
        }
        sorted.order_by_key(|(bucket, _)| *bucket);
        for (bucket, _) in &sorted {
            if let Some(start) = starts.get_mut(bucket + 1) {
                *start += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Self { filter: filter.into(), entries: sorted.into_iter().map(|(_, e)| e).collect(), starts, short }
    }

    /// Where a literal may stand, in the order of the line: as much as its first eight bytes.
    pub(super) fn find(&self, line: &[u8], mut found: impl FnMut(Found)) {
        for (number, literal) in &self.short {
            if let Some(at) = memchr::memmem::find(line, literal) {
                found(Found { number: *number as usize, at });
            }
        }
        for (at, bytes) in line.windows(HEAD).enumerate() {
            let Ok(bytes) = bytes.try_into() else { continue };
            let place = hash(u32::from_le_bytes(bytes));
            if self.filter.get(place >> 6).is_none_or(|cell| cell >> (place & 63) & 1 == 0) {
                continue;
            }
            let (text, _) = eight(line.get(at..).unwrap_or_default());
            for e in self.of(bucket(place)).iter().filter(|e| (text ^ e.start) & e.mask == 0) {
                found(Found { number: e.number as usize, at });
            }
        }
    }

    fn of(&self, bucket: usize) -> &[Entry] {
        let start = |b: usize| self.starts.get(b).copied().unwrap_or_default() as usize;
        self.entries.get(start(bucket)..start(bucket + 1)).unwrap_or_default()
    }
}

fn head(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(..HEAD)?.try_into().ok()?))
}

/// The first eight bytes, or as many as there are, and which of them count.
fn eight(bytes: &[u8]) -> (u64, u64) {
    if let Some(all) = bytes.first_chunk::<8>() {
        return (u64::from_le_bytes(*all), u64::MAX);
    }
    let mut start = [0; 8];
    let mut mask = [0; 8];
    for ((s, m), byte) in start.iter_mut().zip(&mut mask).zip(bytes) {
        (*s, *m) = (*byte, u8::MAX);
    }
    (u64::from_le_bytes(start), u64::from_le_bytes(mask))
}

#[inline]
fn hash(head: u32) -> usize {
    (head.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

#[inline]
fn bucket(place: usize) -> usize {
    place >> (BITS - BUCKET_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(all: &[&str], line: &str) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        Literals::new(all.iter().copied()).find(line.as_bytes(), |f| out.push((f.number, f.at)));
        out
    }

    #[test]
    fn literals_are_found_in_the_order_of_the_line() {
        let all = ["out of memory", "CUDA out of memory", "emory", "CUDA error"];
        assert_eq!(found(&all, "CUDA out of memory"), [(1, 0), (0, 5), (2, 13)]);
        assert_eq!(found(&all, "x CUDA out of memory, again: out of memory").len(), 5);
        assert_eq!(found(&all, "CUDA er"), [], "seven bytes of ten");
        assert_eq!(found(&all, "CUD"), []);
        assert_eq!(found(&all, ""), []);
    }

    #[test]
    fn a_literal_at_the_end_of_a_line_and_short_ones_are_found() {
        assert_eq!(found(&["VRAM", "OOM", "GPU "], "no VRAM"), [(0, 3)]);
        assert_eq!(found(&["VRAM", "OOM", "GPU "], "GPU OOM"), [(1, 4), (2, 0)]);
    }

    #[test]
    fn every_literal_of_the_knowledge_is_found_in_itself() {
        let knowledge = crate::knowledge::Knowledge::embedded().unwrap();
        let all: Vec<&str> =
            knowledge.signatures().iter().flat_map(|s| s.literals.iter()).map(AsRef::as_ref).collect();
        let literals = Literals::new(all.iter().copied());
        for (number, literal) in all.iter().enumerate() {
            let mut own = false;
            let line = format!("ab{literal}");
            literals.find(line.as_bytes(), |f| own |= f == Found { number, at: 2 });
            assert!(own, "{literal}");
        }
    }
}
