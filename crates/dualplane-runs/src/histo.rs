//! A distribution of times in little memory: bins of half a percent.

use dualplane_gate::document::Distribution;

/// A bin is this much wider than the one before.
const STEP: f64 = 1.005;
/// The first bin ends here, in seconds.
const LEAST: f64 = 1e-6;
/// Bins: up to a day and more.
const BINS: usize = 5_200;

/// Values of seconds.
#[derive(Debug, Clone, Default)]
pub struct Histo {
    bins: Vec<u32>,
    n: u64,
    sum: f64,
    max: f64,
    min: f64,
}

impl Histo {
    /// Takes a value.
    pub fn add(&mut self, seconds: f64) {
        if !seconds.is_finite() || seconds < 0.0 {
            return;
        }
        let bin = if seconds <= LEAST { 0 } else { ((seconds / LEAST).ln() / STEP.ln()).ceil() as usize };
        let bin = bin.min(BINS - 1);
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        if let Some(count) = self.bins.get_mut(bin) {
            *count = count.saturating_add(1);
        }
        self.min = if self.n == 0 { seconds } else { self.min.min(seconds) };
        self.n += 1;
        self.sum += seconds;
        self.max = self.max.max(seconds);
    }

    /// Values that it has.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The value that this share does not exceed, within a quarter of a percent.
    #[must_use]
    pub fn at(&self, share: f64) -> Option<f64> {
        let wanted = (self.n as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0_u64;
        for (i, count) in self.bins.iter().enumerate() {
            sum += u64::from(*count);
            if sum >= wanted {
                // The middle of the bin, and never beyond what was seen.
                let middle = LEAST * STEP.powf(i as f64 - 0.5);
                return Some(middle.clamp(self.min, self.max));
            }
        }
        None
    }

    /// As the document has it; none of no values.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        Some(Distribution {
            n: self.n,
            mean: self.sum / self.n as f64,
            p50: self.at(0.5)?,
            p90: self.at(0.9)?,
            p95: self.at(0.95)?,
            p99: self.at(0.99)?,
            max: self.max,
        })
    }
}
