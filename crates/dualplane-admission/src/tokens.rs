//! How many tokens the bytes of a text are: a range, learnt from what the server counted.

use crate::arithmetic::{ceil, floor, real};
use crate::cost::Range;

/// Before anything was counted: from long English words to text that its tokeniser hardly knows.
const PRIOR: (f64, f64) = (0.1, 0.6);
/// Counts after which the range is believed.
const ENOUGH: u32 = 8;
/// How much a new count moves the mean and its deviation.
const PACE: f64 = 0.05;
/// The range is so many mean deviations wide: some 98 % of texts for a normal spread (a deviation is 0.8 sigma).
const WIDE: f64 = 3.0;
/// The deviation is at least this share of the mean: texts that were alike say little of the next.
const LEAST_DEVIATION: f64 = 0.04;
/// Tokens that a template adds to a message: role, separators, the assistant's opening.
pub const PER_MESSAGE: u64 = 8;

/// Tokens for a byte, as the server's own counts have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    mean: f64,
    deviation: f64,
    counts: u32,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { mean: f64::midpoint(PRIOR.0, PRIOR.1), deviation: 0.0, counts: 0 }
    }
}

impl Calibration {
    /// The tokens of so many bytes of text in so many messages.
    #[must_use]
    pub fn tokens(&self, bytes: u64, messages: u64) -> Range {
        let (low, high) = self.range();
        let template = messages.saturating_mul(PER_MESSAGE);
        Range {
            low: floor(real(bytes) * low),
            // No tokeniser makes more than one token of a byte.
            high: ceil(real(bytes) * high).min(bytes).saturating_add(template),
        }
    }

    /// Takes in what the server counted.
    pub fn learn(&mut self, bytes: u64, messages: u64, counted: u64) {
        // A handful of bytes is all template.
        if bytes < 32 || counted == 0 {
            return;
        }
        let of_text = counted.saturating_sub(messages.saturating_mul(PER_MESSAGE / 2)).max(1);
        let ratio = (real(of_text) / real(bytes)).min(1.0);
        // The first counts weigh all the same, so that the prior is gone after them.
        let pace = PACE.max(1.0 / f64::from(self.counts + 1));
        let off = (ratio - self.mean).abs();
        if self.counts > 0 {
            self.deviation += (off - self.deviation) * pace.min(0.5);
        }
        self.mean += (ratio - self.mean) * pace;
        self.counts = self.counts.saturating_add(1);
    }

    /// Whether enough was counted.
    #[must_use]
    pub fn is_learnt(&self) -> bool {
        self.counts >= ENOUGH
    }

    /// Least and most tokens for a byte.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        if !self.is_learnt() {
            return PRIOR;
        }
        let off = WIDE * self.deviation.max(self.mean * LEAST_DEVIATION);
        ((self.mean - off).max(0.0), (self.mean + off).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn narrows_with_counts() {
        let mut c = Calibration::default();
        assert_eq!(c.tokens(1000, 0), Range { low: 100, high: 600 });
        for i in 0..50 {
            c.learn(4000, 1, 1000 + (i % 5) * 10);
        }
        let r = c.tokens(4000, 1);
        assert!(r.low > 850 && r.low < 1000 && r.high > 1040 && r.high < 1200, "{r:?}");
    }

    proptest! {
        #[test]
        fn never_more_than_a_token_a_byte(counts in proptest::collection::vec((0_u64..1 << 40, 0_u64..99, 0_u64..1 << 40), 0..40),
            bytes in 0_u64..1 << 40) {
            let mut c = Calibration::default();
            for (b, m, n) in counts {
                c.learn(b, m, n);
            }
            let r = c.tokens(bytes, 0);
            prop_assert!(r.low <= r.high && r.high <= bytes, "{:?} of {}", r, bytes);
        }
    }
}
