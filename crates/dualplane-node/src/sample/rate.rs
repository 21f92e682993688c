//! When the next round is due: each second, ten times a second while memory moves fast, and that only for a part of the time.
//!
//! A server that loads a model moves for a minute; one that sits at 95 % of its limit does so for weeks. So fast rounds are
//! paid from an account that fills slowly: what is interesting and new is seen closely, what stays so is not.

use std::time::Duration;

use crate::clock::Moment;

/// Bounds of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// Between whole rounds.
    pub calm: Duration,
    /// Between rounds over what moves.
    pub fast: Duration,
    /// The most time of fast rounds in one go.
    pub account: Duration,
    /// The account gets 1 s back in so many seconds.
    pub refill: u32,
    /// A move of so many thousandths of the limit within a second is fast.
    pub fast_permille: u64,
    /// Without a limit: a move of so many bytes.
    pub fast_bytes: u64,
    /// A working set above so many thousandths of the limit is close to death.
    pub near_permille: u64,
}

impl Default for RateLimits {
    /// A minute of fast rounds covers the load of a model from a local disk; one tenth of the time in the long run.
    fn default() -> Self {
        Self {
            calm: Duration::from_secs(1),
            fast: Duration::from_millis(100),
            account: Duration::from_secs(60),
            refill: 10,
            fast_permille: 10,
            fast_bytes: 256 << 20,
            near_permille: 900,
        }
    }
}

/// What a round covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Whole,
    /// What moves, and the GPUs.
    Hot,
}

/// State of the rate.
#[derive(Debug, Clone)]
pub struct Rate {
    limits: RateLimits,
    whole_due: Moment,
    last: Moment,
    /// Nanoseconds of fast rounds that are left.
    left: u64,
    hot: bool,
}

impl Rate {
    /// The first round is due at once.
    #[must_use]
    pub fn new(limits: RateLimits, now: Moment) -> Self {
        Self { left: nanos(limits.account), limits, whole_due: now, last: now, hot: false }
    }

    /// The bounds.
    #[must_use]
    pub fn limits(&self) -> &RateLimits {
        &self.limits
    }

    /// What a round that begins now covers.
    #[must_use]
    pub fn scope(&self, now: Moment) -> Scope {
        if now >= self.whole_due { Scope::Whole } else { Scope::Hot }
    }

    /// When the next round is due.
    #[must_use]
    pub fn due(&self) -> Moment {
        if self.hot { self.last.plus(self.limits.fast).min(self.whole_due) } else { self.whole_due }
    }

    /// A round began at `now`; `moving`: something in it moves fast or is close to its limit.
    pub fn took(&mut self, scope: Scope, now: Moment, moving: bool) {
        let since = nanos(now.since(self.last));
        self.left = if self.hot {
            self.left.saturating_sub(since)
        } else {
            nanos(self.limits.account)
                .min(self.left.saturating_add(since / u64::from(self.limits.refill.max(1))))
        };
        self.last = now;
        if scope == Scope::Whole {
            // On the beat, unless a beat was missed: a late round does not make all later ones late.
            let next = self.whole_due.plus(self.limits.calm);
            self.whole_due = if next > now { next } else { now.plus(self.limits.calm) };
        }
        // Once it is used up, the account must hold some rounds before they begin again.
        let enough = if self.hot { 0 } else { nanos(self.limits.calm) };
        self.hot = moving && self.left > enough;
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
