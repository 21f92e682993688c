//! When requests came and how many there were at once, counted in slots whose number has a bound.

use std::collections::BTreeMap;

/// Slots that are kept: a day by the second. Of a longer time the slots grow.
const MAX_SLOTS: usize = 90_000;
/// Requests of a window by whose spread bursts are told: fewer tell chance only.
const WINDOW: f64 = 8.0;
/// Windows that a slice has in which the rate is taken for constant.
const WINDOWS: usize = 24;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    began: u32,
    /// Those that began less those that ended.
    net: i32,
}

/// Arrivals over time.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    slots: BTreeMap<i64, Slot>,
    /// Seconds of a slot.
    width: i64,
    /// Requests that came in the fullest second, where slots were that short.
    peak: u32,
    /// Requests with a time.
    pub(crate) timed: u64,
    /// Requests that also said how long they took, and the sum of it.
    lasted: (u64, f64),
    first: f64,
    last: f64,
}

/// What a timeline tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Times {
    pub(crate) span: f64,
    pub(crate) rate: f64,
    pub(crate) cv: Option<f64>,
    pub(crate) rates: Vec<f64>,
    pub(crate) slice: f64,
    pub(crate) peak: Option<f64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) at_once: Option<f64>,
    pub(crate) most_at_once: Option<u64>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            width: 1,
            peak: 0,
            timed: 0,
            lasted: (0, 0.0),
            first: f64::INFINITY,
            last: f64::NEG_INFINITY,
        }
    }
}

impl Timeline {
    /// A request began, and took so long.
    pub(crate) fn add(&mut self, at: f64, seconds: Option<f64>) {
        if !at.is_finite() || at.abs() > 1e11 {
            return;
        }
        self.timed += 1;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        let slot = self.slot(at);
        slot.began = slot.began.saturating_add(1);
        slot.net = slot.net.saturating_add(1);
        if self.width == 1 {
            let began = self.slot(at).began;
            self.peak = self.peak.max(began);
        }
        if let Some(seconds) = seconds.filter(|s| (0.0..=86_400.0).contains(s)) {
            self.lasted = (self.lasted.0 + 1, self.lasted.1 + seconds);
            // An end counts in the slot behind: a request that began and ended in one was there in it.
            let behind = at + seconds + self.width as f64;
            let slot = self.slot(behind);
            slot.net = slot.net.saturating_sub(1);
        }
        while self.slots.len() > MAX_SLOTS {
            self.coarsen();
        }
    }

    fn slot(&mut self, at: f64) -> &mut Slot {
        let key = (at.floor() as i64).div_euclid(self.width);
        self.slots.entry(key).or_default()
    }

    fn coarsen(&mut self) {
        self.width = self.width.saturating_mul(2);
        let mut wider: BTreeMap<i64, Slot> = BTreeMap::new();
        for (key, s) in std::mem::take(&mut self.slots) {
            let slot = wider.entry(key.div_euclid(2)).or_default();
            slot.began = slot.began.saturating_add(s.began);
            slot.net = slot.net.saturating_add(s.net);
        }
        self.slots = wider;
    }

    /// What it tells; none below two requests at two times.
    pub(crate) fn times(&self) -> Option<Times> {
        let span = self.last - self.first;
        if self.timed < 2 || !span.is_finite() || span <= 0.0 {
            return None;
        }
        // The time between the first and the last holds one fewer.
        let rate = (self.timed - 1) as f64 / span;
        let counts = self.counts();
        let (rates, slice) = self.rates(&counts);
        let full = self.lasted.0 as f64 >= self.timed as f64 * 0.5;
        let seconds = (self.lasted.0 > 0).then(|| self.lasted.1 / self.lasted.0 as f64);
        let mut now = 0_i64;
        let mut most = 0_i64;
        for s in self.slots.values() {
            now += i64::from(s.net);
            most = most.max(now);
        }
        Some(Times {
            span,
            rate,
            cv: self.cv(&counts),
            rates,
            slice,
            peak: (self.width == 1 && span >= 2.0).then(|| f64::from(self.peak)),
            // Little's law: requests at once are their rate times what each takes.
            at_once: seconds.filter(|_| full).map(|s| rate * s),
            seconds,
            most_at_once: full.then_some(most.max(1).unsigned_abs()),
        })
    }

    /// Requests of each slot between the first and the last, also of those without any.
    fn counts(&self) -> Vec<u32> {
        let key = |at: f64| (at.floor() as i64).div_euclid(self.width);
        let (from, to) = (key(self.first), key(self.last));
        let wanted = to.saturating_sub(from).unsigned_abs() as usize;
        // A stray time (1970 in one line) would make the list as long as the years between.
        if wanted > MAX_SLOTS * 8 {
            return self.slots.values().map(|s| s.began).collect();
        }
        (from..=to).map(|k| self.slots.get(&k).map_or(0, |s| s.began)).collect()
    }

    /// The spread of counts within slices of even rate: for arrivals of independent gaps, the square of the gaps' variation.
    fn cv(&self, counts: &[u32]) -> Option<f64> {
        let mean =
            f64::from(counts.iter().copied().fold(0_u32, u32::saturating_add)) / counts.len().max(1) as f64;
        let join = (WINDOW / mean.max(1e-9)).ceil().clamp(1.0, 1e9) as usize;
        let windows: Vec<f64> =
            counts.chunks_exact(join).map(|c| c.iter().map(|n| f64::from(*n)).sum()).collect();
        let (mut sum, mut of) = (0.0, 0_u32);
        for slice in windows.chunks(WINDOWS).filter(|s| s.len() >= WINDOWS / 2) {
            let n = slice.len() as f64;
            let mean = slice.iter().sum::<f64>() / n;
            if mean > 0.0 {
                let variance = slice.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
                sum += variance / mean;
                of += 1;
            }
        }
        (of > 0).then(|| (sum / f64::from(of)).sqrt().min(100.0))
    }

    /// Rates of up to 48 equal slices over their mean, where there are enough requests to tell them from chance.
    fn rates(&self, counts: &[u32]) -> (Vec<f64>, f64) {
        let slices = ((self.timed / 200) as usize).min(48).min(counts.len() / 30);
        if slices < 2 {
            return (Vec::new(), 0.0);
        }
        let each = counts.len().div_ceil(slices);
        let of = |c: &[u32]| c.iter().map(|n| f64::from(*n)).sum::<f64>() / c.len() as f64;
        let all: Vec<f64> = counts.chunks(each).map(of).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        if mean <= 0.0 {
            return (Vec::new(), 0.0);
        }
        let two = |r: f64| (r / mean * 100.0).round() / 100.0;
        (all.into_iter().map(two).collect(), (each as i64 * self.width) as f64)
    }
}
