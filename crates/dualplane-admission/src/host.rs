//! Host RAM of a server: what its cgroup may hold, holds, and what was admitted since that was read.

use crate::Ms;
use crate::arithmetic::share;

/// A request has grown to what it takes after this time; until then it is counted on top of what was read.
const SETTLES_AFTER: Ms = 3_000;
/// A reading that is older says nothing.
const STALE_AFTER: Ms = 15_000;

/// One reading of the server's cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// When it was read.
    pub at: Ms,
    /// The tightest limit; `None` where there is none.
    pub limit: Option<u64>,
    /// What cannot be reclaimed: anonymous memory, tmpfs and pinned memory, kernel memory.
    pub held: u64,
    /// Share of the last 10 s in which all tasks waited for memory, hundredths of a percent.
    pub stalled: Option<u64>,
    /// OOM kills in the group since it was made.
    pub kills: Option<u64>,
}

/// Where a server's host RAM stands.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Share of the limit that stays free.
    reserve: f64,
    reading: Option<Reading>,
    /// Admitted lately: when, and how many bytes. A request that ended early is left in: memory is given back late.
    unsettled: Vec<(Ms, u64)>,
}

impl Host {
    /// Of which nothing was read yet.
    #[must_use]
    pub fn new(reserve: f64) -> Self {
        Self { reserve, ..Self::default() }
    }

    /// Takes a reading.
    pub fn read(&mut self, reading: Reading) {
        self.reading = Some(reading);
        self.settle(reading.at);
    }

    /// The last reading, while it is fresh.
    #[must_use]
    pub fn reading(&self, now: Ms) -> Option<Reading> {
        self.reading.filter(|r| now.saturating_sub(r.at) <= STALE_AFTER)
    }

    /// What may be held at most; `None` where nothing limits it or nothing is known.
    #[must_use]
    pub fn most(&self) -> Option<u64> {
        let limit = self.reading?.limit?;
        Some(limit - share(limit, self.reserve))
    }

    /// Bytes that another request may take now; `None` where nothing limits it or nothing is known.
    #[must_use]
    pub fn free(&self, now: Ms) -> Option<u64> {
        let reading = self.reading(now)?;
        let unsettled = self.unsettled(now);
        Some(self.most()?.saturating_sub(reading.held).saturating_sub(unsettled))
    }

    /// Bytes that were admitted and are not in the reading for sure.
    #[must_use]
    pub fn unsettled(&self, now: Ms) -> u64 {
        let fresh = self.unsettled.iter().filter(|(at, _)| now.saturating_sub(*at) < SETTLES_AFTER);
        fresh.map(|(_, b)| *b).fold(0, u64::saturating_add)
    }

    /// A request was admitted.
    pub fn admit(&mut self, now: Ms, bytes: u64) {
        self.settle(now);
        // Without a limit nobody asks.
        if self.reading.is_some_and(|r| r.limit.is_some()) {
            match self.unsettled.last_mut() {
                // One entry for each tenth of a second: a flood must not make this long.
                Some((at, sum)) if now.saturating_sub(*at) < 100 => *sum = sum.saturating_add(bytes),
                _ => self.unsettled.push((now, bytes)),
            }
        }
    }

    fn settle(&mut self, now: Ms) {
        self.unsettled.retain(|(at, _)| now.saturating_sub(*at) < SETTLES_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_admitted_since_counts_until_it_is_in_the_reading() {
        let mut h = Host::new(0.1);
        assert_eq!(h.free(0), None);
        let reading = Reading { at: 0, limit: Some(1000), held: 500, stalled: None, kills: None };
        h.read(reading);
        assert_eq!(h.free(0), Some(400));
        h.admit(10, 150);
        h.admit(20, 150);
        assert_eq!((h.free(20), h.unsettled.len()), (Some(100), 1));
        h.read(Reading { at: 4000, held: 800, ..reading });
        assert_eq!(h.free(4000), Some(100));
        assert_eq!(h.free(40_000), None, "too old");
        h.read(Reading { at: 5000, limit: None, ..reading });
        h.admit(5000, 1 << 40);
        assert_eq!(h.free(5000), None);
    }
}
