//! A log that comes in pieces, from a pipe, an archive or a network: the same as [`Sifter::part`] by hand.

use super::{AFTER, BEFORE, Merge, Sifted, Sifter};

/// Bytes whose lines are judged at a time: large against its context, small against the memory of a pod.
pub const BLOCK: usize = 1 << 20;
/// Of each log this much of its head (the start-up) and of its tail (the death) is kept whole, where there is room.
const ENDS: usize = 256 << 10;

/// How much of head and tail is kept whole under a budget.
#[must_use]
pub fn ends(budget: usize) -> usize {
    ENDS.min(budget / 4)
}

/// A log that is being fed.
#[derive(Debug)]
pub struct Feed<'s> {
    sifter: &'s Sifter,
    merge: Merge,
    ends: usize,
    buffer: Vec<u8>,
    /// Where the lines begin that are not judged yet; what stands before is context.
    start: usize,
    first: bool,
}

impl<'s> Feed<'s> {
    /// Keeps at most about `budget` bytes of text.
    #[must_use]
    pub fn new(sifter: &'s Sifter, budget: usize) -> Self {
        Self {
            sifter,
            merge: Merge::new(budget),
            ends: ends(budget),
            buffer: Vec::new(),
            start: 0,
            first: true,
        }
    }

    /// Keeps so much of head and tail whole instead: with little, a small log is treated as the middle of a large one is.
    #[must_use]
    pub fn with_ends(self, ends: usize) -> Self {
        Self { ends, ..self }
    }

    /// The next piece.
    pub fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let room = self.want().saturating_sub(self.buffer.len()).min(piece.len());
            let (now, later) = piece.split_at_checked(room).unwrap_or((piece, &[]));
            self.buffer.extend_from_slice(now);
            piece = later;
            // With nothing behind it the block may be the last, whose tail is kept.
            if self.buffer.len() >= self.want() && !piece.is_empty() {
                self.block(false);
            }
        }
    }

    /// The kept lines.
    #[must_use]
    pub fn finish(mut self) -> Sifted {
        self.block(true);
        self.merge.finish()
    }

    /// The tail of the log must be at hand when its end is met.
    fn want(&self) -> usize {
        self.start + BLOCK + AFTER.max(ENDS).max(self.ends)
    }

    fn block(&mut self, ended: bool) {
        let ends = self.ends;
        let own = self.start..if ended { self.buffer.len() } else { self.start + BLOCK };
        let head = own.start..if self.first { (own.start + ends).min(own.end) } else { 0 };
        let tail = if ended { own.end.saturating_sub(ends).max(own.start) } else { own.end }..own.end;
        self.merge.push(self.sifter.part(&self.buffer, own.clone(), &[head, tail]));
        self.first = false;
        self.buffer.drain(..own.end.saturating_sub(BEFORE));
        self.start = BEFORE.min(own.end);
    }
}
