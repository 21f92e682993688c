//! This machine's clock beside the time that goes on: who jumps how far. Deaths are told of in the order of their receipt, and a clock
//! that jumps must put none of them where nobody looks.

use std::time::Instant;

use dualplane_incidents::Time;

/// Clocks of replicas, and what is set by hand, differ by less.
pub const SKEW_MS: i64 = 24 * 3_600_000;

/// By how much the clock is ahead of where it would be, had it gone on evenly since the start.
#[derive(Debug, Clone, Copy)]
pub struct Drift {
    wall: Time,
    at: Instant,
}

impl Drift {
    /// Begins now.
    #[must_use]
    pub fn new(wall: Time, at: Instant) -> Self {
        Self { wall, at }
    }

    /// Milliseconds; negative where it was set back.
    #[must_use]
    pub fn ms(&self, wall: Time, at: Instant) -> i64 {
        let went = i64::try_from(at.saturating_duration_since(self.at).as_millis()).unwrap_or(i64::MAX);
        wall.ms().saturating_sub(self.wall.ms()).saturating_sub(went)
    }
}

/// The place of one who follows what is received. A clock that jumps far ahead takes the place with it; when it is right again, so is
/// the place.
#[derive(Debug)]
pub struct Place {
    drift: Drift,
    last: i64,
    before: Option<Time>,
}

impl Place {
    /// Begins now.
    #[must_use]
    pub fn new(wall: Time, at: Instant) -> Self {
        Self { drift: Drift::new(wall, at), last: 0, before: None }
    }

    /// Where to go on from, of one who would go on from here.
    pub fn look(&mut self, from: Time, wall: Time, at: Instant) -> Time {
        let drift = self.drift.ms(wall, at);
        let step = drift.saturating_sub(self.last);
        self.last = drift;
        if step >= SKEW_MS {
            self.before = self.before.or(Some(from));
        } else if step <= -SKEW_MS
            && let Some(before) = self.before.take()
        {
            return before.min(from);
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_place_comes_back_from_the_future_with_the_clock() {
        let (start, at) = (1_000_000_000_000, Instant::now());
        let day = 86_400_000;
        let mut p = Place::new(Time::from_ms(start), at);
        let mut look = |from: i64, wall: i64, s: u64| {
            p.look(Time::from_ms(start + from), Time::from_ms(start + wall), at + Duration::from_secs(s)).ms()
                - start
        };
        assert_eq!(look(500, 1_000, 1), 500);
        assert_eq!(look(1_500, 200 * day, 2), 1_500, "it jumps: the place is still that before");
        assert_eq!(look(200 * day, 200 * day + 1_000, 3), 200 * day);
        assert_eq!(look(200 * day + 900, 4_000, 4), 1_500, "and is so again");
        // Set back, the place stays: what comes is put behind it.
        assert_eq!(look(4_500, -200 * day, 5), 4_500);
        assert_eq!(look(4_600, 6_000, 6), 4_600);
        // What is small is followed.
        assert_eq!(look(7_000, 3_600_000, 7), 7_000);
    }

    #[test]
    fn drift_is_what_the_clock_did_beyond_time() {
        let (wall, at) = (Time::from_ms(0), Instant::now());
        let d = Drift::new(wall, at);
        let later = at + Duration::from_secs(10);
        assert_eq!(d.ms(Time::from_ms(10_000), later), 0);
        assert_eq!(d.ms(Time::from_ms(-90_000), later), -100_000);
        assert_eq!(d.ms(Time::from_ms(110_000), later), 100_000);
    }
}
