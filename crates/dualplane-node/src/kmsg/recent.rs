//! The last lines of the kernel, to be quoted in an incident: the ring of the kernel may have moved on by then.

use std::collections::VecDeque;

/// Bytes that are kept. The record of a kill with a table of 500 processes has 60 KiB.
const MAX_BYTES: usize = 1 << 20;

/// Raw lines with their numbers.
#[derive(Debug, Default)]
pub struct Recent {
    lines: VecDeque<(u64, String)>,
    bytes: usize,
}

impl Recent {
    /// Takes a line in; the oldest go.
    pub(super) fn push(&mut self, number: u64, raw: &str) {
        self.bytes += raw.len();
        self.lines.push_back((number, raw.to_owned()));
        while self.bytes > MAX_BYTES {
            let Some((_, old)) = self.lines.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(old.len());
        }
    }

    /// All lines, the oldest first.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = (u64, &str)> {
        self.lines.iter().map(|(n, l)| (*n, l.as_str()))
    }

    /// Lines from a number on, as `/dev/kmsg` printed them.
    pub fn from(&self, number: u64) -> impl Iterator<Item = (u64, &str)> {
        self.lines.iter().skip_while(move |(n, _)| *n < number).map(|(n, l)| (*n, l.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go() {
        let mut r = Recent::default();
        for n in 0..3000 {
            r.push(n, &"x".repeat(1000));
        }
        let (first, _) = r.from(0).next().unwrap();
        assert_eq!((first, r.from(0).count(), r.bytes), (3000 - 1048, 1048, 1_048_000));
        assert_eq!(r.from(2998).map(|(n, _)| n).collect::<Vec<_>>(), [2998, 2999]);
    }
}
