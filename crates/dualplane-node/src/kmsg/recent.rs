//! The last lines of the kernel, to be quoted in an incident: the ring of the kernel may have moved on by then.
//!
//! Lines lie behind each other in blocks, and whole blocks go: a kill prints a hundred short lines, and a piece of memory of
//! its own for each would take as much again and leave holes behind.

use std::collections::VecDeque;

/// Bytes that are kept. The record of a kill with a table of 500 processes has 60 KiB.
const MAX_BYTES: usize = 1 << 20;
/// Bytes of a block: what more or less is kept than that.
const BLOCK: usize = 64 << 10;

/// Raw lines with their numbers.
#[derive(Debug, Default)]
pub struct Recent {
    blocks: VecDeque<Block>,
    bytes: usize,
}

/// Lines behind each other.
#[derive(Debug, Default)]
struct Block {
    text: String,
    /// Number of each line, and where it ends.
    lines: Vec<(u64, u32)>,
}

impl Block {
    fn lines(&self) -> impl DoubleEndedIterator<Item = (u64, &str)> {
        let begin =
            |i: usize| i.checked_sub(1).and_then(|before| self.lines.get(before)).map_or(0, |(_, e)| *e);
        self.lines.iter().enumerate().map(move |(i, (number, end))| {
            (*number, self.text.get(begin(i) as usize..*end as usize).unwrap_or_default())
        })
    }
}

impl Recent {
    /// Takes a line in; the oldest go.
    pub(super) fn push(&mut self, number: u64, raw: &str) {
        let full = |b: &Block| !b.text.is_empty() && b.text.len() + raw.len() > BLOCK;
        if self.blocks.back().is_none_or(full) {
            // The one that goes is written anew.
            let old = if self.bytes + BLOCK > MAX_BYTES { self.blocks.pop_front() } else { None };
            let new = || Block { text: String::with_capacity(BLOCK), ..Block::default() };
            let mut block = old.unwrap_or_else(new);
            self.bytes = self.bytes.saturating_sub(block.text.len());
            block.text.clear();
            block.lines.clear();
            self.blocks.push_back(block);
        }
        let Some(block) = self.blocks.back_mut() else { return };
        block.text.push_str(raw);
        block.lines.push((number, u32::try_from(block.text.len()).unwrap_or(u32::MAX)));
        self.bytes += raw.len();
    }

    /// All lines, the oldest first.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = (u64, &str)> {
        self.blocks.iter().flat_map(Block::lines)
    }

    /// Lines from a number on, as `/dev/kmsg` printed them.
    pub fn from(&self, number: u64) -> impl Iterator<Item = (u64, &str)> {
        self.lines().skip_while(move |(n, _)| *n < number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go() {
        let mut r = Recent::default();
        for n in 0..3000 {
            r.push(n, &format!("{n} {}", "x".repeat(995)));
            assert!(r.bytes <= MAX_BYTES, "{n}");
        }
        let (first, text) = r.lines().next().unwrap();
        assert!(text.starts_with(&format!("{first} x")), "{text}");
        // All but the block that had to go.
        let kept = 3000 - first;
        assert!((MAX_BYTES - 2 * BLOCK..=MAX_BYTES).contains(&(kept as usize * 1000)), "{kept}");
        assert!(r.lines().map(|(n, _)| n).eq(first..3000));
        assert!(r.lines().rev().map(|(n, _)| n).eq((first..3000).rev()));
        let from: Vec<_> = r.from(2998).map(|(n, l)| (n, l.split(' ').next().unwrap())).collect();
        assert_eq!(from, [(2998, "2998"), (2999, "2999")]);
        let held: usize = r.blocks.iter().map(|b| b.text.capacity()).sum();
        assert!(held <= MAX_BYTES + 2 * BLOCK, "{held}");
    }

    #[test]
    fn a_line_that_is_longer_than_a_block_is_kept_whole() {
        let mut r = Recent::default();
        r.push(1, "short");
        r.push(2, &"y".repeat(3 * BLOCK));
        r.push(3, "after");
        let lengths: Vec<_> = r.lines().map(|(n, l)| (n, l.len())).collect();
        assert_eq!(lengths, [(1, 5), (2, 3 * BLOCK), (3, 5)]);
    }
}
