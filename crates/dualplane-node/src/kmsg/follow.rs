//! Keeps to the sequence: passes over what was taken in before, counts what was overwritten.

use std::io;
use std::time::Duration;

use super::record::{Record, parse};
use super::source::{ReadOutcome, Source};

/// A record that is new.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// What it says.
    pub record: Record<'a>,
    /// Numbers that were jumped over directly before it.
    pub lost: u64,
}

/// Follows one source within one boot.
#[derive(Debug)]
pub struct Follower {
    source: Source,
    buffer: Vec<u8>,
    text: String,
    next: Option<u64>,
    /// Records that the ring overwrote before they were read.
    pub lost: u64,
    /// Records that had been taken in before.
    pub passed_over: u64,
    /// Lines that are no records; continuation lines of a stream are none of these.
    pub odd: u64,
}

impl Follower {
    /// Follows from `next` on. Without it from the oldest record: what happened before the agent started is of interest too.
    #[must_use]
    pub fn new(source: Source, next: Option<u64>) -> Self {
        Self { source, buffer: Source::buffer(), text: String::new(), next, lost: 0, passed_over: 0, odd: 0 }
    }

    /// The number that comes next, once one was seen.
    #[must_use]
    pub fn next_number(&self) -> Option<u64> {
        self.next
    }

    /// Where records come from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Waits until something can be read.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&self, most: Duration) -> io::Result<bool> {
        self.source.wait(most)
    }

    /// The next new record that is there now.
    ///
    /// # Errors
    /// The source cannot be read any more.
    pub fn take(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            match self.source.read(&mut self.buffer)? {
                ReadOutcome::Nothing => return Ok(None),
                // Its number tells by how many.
                ReadOutcome::Overwritten => continue,
                ReadOutcome::Record(bytes) => {
                    // Only the numbers are read of what was taken in before: a ring has some ten thousand records.
                    self.text.clear();
                    self.text.push_str(&String::from_utf8_lossy(bytes));
                }
            }
            let Some(number) = parse(&self.text).map(|r| r.sequence) else {
                self.odd += u64::from(!self.text.starts_with(' ') && !self.text.is_empty());
                continue;
            };
            match self.next {
                Some(next) if number < next => self.passed_over += 1,
                _ => {
                    let lost = self.next.map_or(0, |next| number - next);
                    self.lost += lost;
                    self.next = Some(number.saturating_add(1));
                    return Ok(parse(&self.text).map(|record| Line { record, lost }));
                }
            }
        }
    }
}
