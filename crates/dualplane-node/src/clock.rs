//! The one clock: nanoseconds of the monotonic clock, and where they stand on the wall.
//!
//! The monotonic clock of Linux counts from boot, is the same for all processes and does not jump when somebody sets the
//! time. So what one run of the agent recorded can be compared with what the next one records, and with the kernel's own
//! stamps (`printk` reads the same counter without the corrections of NTP: some milliseconds apart after days).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// A point of the monotonic clock: nanoseconds since boot, without the time that the machine slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let t = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(t.tv_sec).unwrap_or_default();
        Self(
            seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(u64::try_from(t.tv_nsec).unwrap_or_default()),
        )
    }

    /// Time from `earlier` to `self`; zero where it is the later one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment and some time.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// From when to when something was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Before the first read.
    pub from: Moment,
    /// Behind the last read.
    pub to: Moment,
}

impl Span {
    /// How long it took.
    #[must_use]
    pub fn took(self) -> Duration {
        self.to.since(self.from)
    }
}

/// Where a moment stands on the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    at: Moment,
    wall_ms: i64,
}

impl Anchor {
    /// Reads both clocks. Take a new one from time to time: the wall clock is corrected, the monotonic one is not.
    #[must_use]
    pub fn take() -> Self {
        let before = Moment::now();
        let wall = SystemTime::now();
        let after = Moment::now();
        let wall_ms = match wall.duration_since(UNIX_EPOCH) {
            Ok(d) => i64::try_from(d.as_millis()).unwrap_or(i64::MAX),
            Err(e) => -i64::try_from(e.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Self { at: Moment(before.0 + (after.0.saturating_sub(before.0)) / 2), wall_ms }
    }

    /// Milliseconds since 1970 of a moment.
    #[must_use]
    pub fn wall_ms(self, moment: Moment) -> i64 {
        let ahead = i128::from(moment.0) - i128::from(self.at.0);
        self.wall_ms.saturating_add(i64::try_from(ahead / 1_000_000).unwrap_or_default())
    }
}

/// The kernel's name of this boot. Sequence numbers and moments of different boots must never be compared.
#[must_use]
pub fn boot_id(proc_root: &std::path::Path) -> Option<String> {
    let text = std::fs::read_to_string(proc_root.join("sys/kernel/random/boot_id")).ok()?;
    let id = text.trim();
    (id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_go_forward_and_stand_on_the_wall() {
        let a = Moment::now();
        let anchor = Anchor::take();
        let b = Moment::now();
        assert!(b > a);
        assert_eq!(a.since(b), Duration::ZERO);
        let later = b.plus(Duration::from_secs(5));
        let ahead = anchor.wall_ms(later) - anchor.wall_ms(b);
        assert!((4_999..=5_001).contains(&ahead), "{ahead}");
        // A moment before the anchor: this machine may have booted less than a second ago, so the anchor is moved instead.
        let anchor = Anchor { at: later, ..anchor };
        let behind = anchor.wall_ms(b) - anchor.wall_ms(later);
        assert!((-5_001..=-4_999).contains(&behind), "{behind}");
    }

    #[test]
    fn a_boot_has_a_name() {
        if let Some(id) = boot_id(std::path::Path::new("/proc")) {
            assert_eq!(id.len(), 36);
        }
        assert_eq!(boot_id(std::path::Path::new("/nonexistent")), None);
    }
}
