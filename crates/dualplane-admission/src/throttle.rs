//! The closed loop: what the server says of itself makes its budget smaller at once and larger again slowly.
//!
//! The budget is only ever a share of what the arithmetic allows: it never grows above it.

use crate::Ms;

/// Above this use of the KV cache the next long output begins to push others out.
const HOT: f64 = 0.97;
/// Below this there is room again. Between the two nothing changes.
const COOL: f64 = 0.88;
/// All tasks of the group waited for memory so long in the last 10 s, hundredths of a percent.
const STALLED: u64 = 500;
/// … and so short for the budget to grow again.
const CALM: u64 = 100;
/// The budget becomes this share of itself with each sign of trouble …
const DOWN: f64 = 0.8;
/// … but not smaller than this: a server that lies must not stop all traffic.
const LEAST: f64 = 0.1;
/// One step up, as a share of the whole.
const UP: f64 = 0.05;
/// Between a step down and the next: requests that run must end before it shows.
const BETWEEN_DOWN: Ms = 2_000;
/// So long without a sign of trouble before each step up.
const BETWEEN_UP: Ms = 5_000;

/// What a server said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signals {
    /// Used share of the KV cache.
    pub kv_use: Option<f64>,
    /// Preemptions since it started.
    pub preemptions: Option<f64>,
    /// Requests that wait in the server for memory.
    pub waiting: Option<f64>,
    /// Share of the last 10 s in which all its tasks waited for memory, hundredths of a percent.
    pub stalled: Option<u64>,
    /// How fast what it holds in host RAM grows, as the time until the limit is reached.
    pub full_in: Option<Ms>,
}

/// Why the budget was made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The server pushed requests out of its KV cache.
    Preemption,
    /// Its KV cache is full and requests wait in it.
    KvFull,
    /// Its processes wait for host RAM.
    Stalled,
    /// At this pace its host RAM is full within seconds.
    Growth,
}

impl Cause {
    /// As metrics and status say it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Preemption => "preemption",
            Self::KvFull => "kv_full",
            Self::Stalled => "host_stalled",
            Self::Growth => "host_growth",
        }
    }
}

/// Host RAM that is full within this time is a sign of trouble.
const SOON: Ms = 5_000;

/// The share of the budget that is given out.
#[derive(Debug, Clone, PartialEq)]
pub struct Throttle {
    share: f64,
    preemptions: Option<f64>,
    last_down: Option<Ms>,
    last_trouble: Option<Ms>,
    last_up: Option<Ms>,
    cause: Option<Cause>,
    steps: u64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            share: 1.0,
            preemptions: None,
            last_down: None,
            last_trouble: None,
            last_up: None,
            cause: None,
            steps: 0,
        }
    }
}

impl Throttle {
    /// Between [`LEAST`] and 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Why it is below 1.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.cause.filter(|_| self.share < 1.0)
    }

    /// Steps down since the start.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes in what the server said.
    pub fn hear(&mut self, now: Ms, said: &Signals) {
        let trouble = self.trouble(said);
        if let Some(n) = said.preemptions {
            self.preemptions = Some(n);
        }
        if let Some(cause) = trouble {
            self.last_trouble = Some(now);
            if self.last_down.is_none_or(|at| now.saturating_sub(at) >= BETWEEN_DOWN) {
                self.last_down = Some(now);
                self.share = (self.share * DOWN).max(LEAST);
                self.cause = Some(cause);
                self.steps += 1;
            }
            return;
        }
        // A server that says nothing gives no reason to trust it with more.
        let heard = said.kv_use.is_some() || said.stalled.is_some();
        let cool = heard && said.kv_use.is_none_or(|u| u < COOL) && said.stalled.is_none_or(|s| s <= CALM);
        let since = self.last_trouble.max(self.last_up);
        if cool && self.share < 1.0 && since.is_none_or(|at| now.saturating_sub(at) >= BETWEEN_UP) {
            self.last_up = Some(now);
            self.share = (self.share + UP).min(1.0);
        }
    }

    fn trouble(&self, said: &Signals) -> Option<Cause> {
        // A counter that went back belongs to a server that started anew.
        let pushed = said.preemptions.zip(self.preemptions).is_some_and(|(n, before)| n > before);
        let full = said.kv_use.is_some_and(|u| u >= HOT) && said.waiting.is_some_and(|w| w > 0.0);
        let all = [
            (pushed, Cause::Preemption),
            (said.stalled.is_some_and(|s| s >= STALLED), Cause::Stalled),
            (said.full_in.is_some_and(|t| t <= SOON), Cause::Growth),
            (full, Cause::KvFull),
        ];
        all.into_iter().find(|(is, _)| *is).map(|(_, cause)| cause)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn down_at_once_up_slowly_and_nothing_in_between() {
        let mut t = Throttle::default();
        let pushed = |n: f64| Signals { preemptions: Some(n), kv_use: Some(0.5), ..Signals::default() };
        t.hear(0, &pushed(7.0));
        assert!((t.share() - 1.0).abs() < 1e-9, "how many there were before says nothing");
        t.hear(1000, &pushed(9.0));
        assert!((t.share() - 0.8).abs() < 1e-9);
        assert_eq!(t.cause(), Some(Cause::Preemption));
        t.hear(2000, &pushed(10.0));
        assert!((t.share() - 0.8).abs() < 1e-9, "too soon to see what the first step did");
        t.hear(3500, &pushed(11.0));
        assert!((t.share() - 0.64).abs() < 1e-9);
        let lukewarm = Signals { kv_use: Some(0.92), ..pushed(11.0) };
        t.hear(60_000, &lukewarm);
        t.hear(60_500, &Signals::default());
        assert!((t.share() - 0.64).abs() < 1e-9);
        t.hear(61_000, &pushed(11.0));
        t.hear(62_000, &pushed(11.0));
        assert!((t.share() - 0.69).abs() < 1e-9);
        t.hear(70_000, &pushed(0.0));
        assert!((t.share() - 0.74).abs() < 1e-9, "a server that started anew");
    }

    proptest! {
        #[test]
        fn always_a_share(said in proptest::collection::vec((0_u64..9000, proptest::option::of(-1.0..2.0_f64),
            proptest::option::of(0.0..9.0_f64), proptest::option::of(0_u64..10_000)), 0..99)) {
            let (mut t, mut now) = (Throttle::default(), 0);
            for (later, kv_use, preemptions, stalled) in said {
                now += later;
                t.hear(now, &Signals { kv_use, preemptions, waiting: Some(1.0), stalled, full_in: None });
                prop_assert!((LEAST..=1.0).contains(&t.share()));
            }
        }
    }
}
