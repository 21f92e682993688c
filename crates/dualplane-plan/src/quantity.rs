//! Quantities as intervals, and the terms they are sums of.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul};

use serde::Serialize;

/// An amount that is known to lie in `low..=high`, in bytes or tokens as its field says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Quantity {
    /// The least that is plausible.
    pub low: u64,
    /// The most likely amount.
    pub expected: u64,
    /// The most that is plausible.
    pub high: u64,
}

impl Quantity {
    /// An amount that follows from the engine's own arithmetic, without a band.
    #[must_use]
    pub const fn exact(value: u64) -> Self {
        Self { low: value, expected: value, high: value }
    }

    /// `expected`, give or take `half` on each side.
    #[must_use]
    pub const fn around(expected: u64, half: u64) -> Self {
        Self { low: expected.saturating_sub(half), expected, high: expected.saturating_add(half) }
    }

    /// `expected` within a relative band: `share` 0.003 is plus or minus 0.3 %.
    #[must_use]
    pub fn within(expected: u64, share: f64) -> Self {
        // `as` saturates: a negative or unordered share gives no band.
        Self::around(expected, (expected as f64 * share) as u64)
    }

    /// Three bounds in any order; `expected` is clamped between the others.
    #[must_use]
    pub fn band(low: u64, expected: u64, high: u64) -> Self {
        let (low, high) = (low.min(high), low.max(high));
        Self { low, expected: expected.clamp(low, high), high }
    }

    /// `expected`, with a band that reaches to two others, on whichever side they lie.
    #[must_use]
    pub fn reaching(expected: u64, a: u64, b: u64) -> Self {
        Self { low: a.min(b).min(expected), expected, high: a.max(b).max(expected) }
    }

    /// Whether there is no band.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.low == self.high
    }

    /// Applies a growing function to each bound.
    #[must_use]
    pub fn map(self, f: impl Fn(u64) -> u64) -> Self {
        Self::band(f(self.low), f(self.expected), f(self.high))
    }

    /// `self - other`, at least zero: low against high and high against low.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_sub(other.high),
            expected: self.expected.saturating_sub(other.expected),
            high: self.high.saturating_sub(other.low),
        }
    }

    /// The larger of two, bound by bound.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            expected: self.expected.max(other.expected),
            high: self.high.max(other.high),
        }
    }

    /// The smaller of two, bound by bound.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            expected: self.expected.min(other.expected),
            high: self.high.min(other.high),
        }
    }
}

impl Add for Quantity {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            low: self.low.saturating_add(other.low),
            expected: self.expected.saturating_add(other.expected),
            high: self.high.saturating_add(other.high),
        }
    }
}

impl Mul<u64> for Quantity {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        self.map(|v| v.saturating_mul(n))
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

/// Which memory a term is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Plane {
    /// VRAM of one GPU.
    Gpu,
    /// RAM of the pod.
    Host,
}

impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "gpu",
            Self::Host => "host",
        })
    }
}

/// One addend of a plan with how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Term {
    /// What it is, as a stable dotted word: `weights.moe`, `activation.sampler`.
    pub name: String,
    /// Which memory it is charged to.
    pub plane: Plane,
    /// How much, in bytes. A GPU term is of the tightest rank.
    pub quantity: Quantity,
    /// The arithmetic with the numbers filled in.
    pub formula: String,
    /// Where the formula comes from: a file of the engine, or a measurement.
    pub source: String,
}

/// Something that the plan does not know, and what would settle it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// What is not known.
    pub what: String,
    /// How to find out.
    pub settle: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtraction_widens_and_never_goes_below_zero() {
        let pool = Quantity::exact(100).minus(Quantity::band(20, 30, 120));
        assert_eq!(pool, Quantity { low: 0, expected: 70, high: 80 });
        assert_eq!(Quantity::within(1000, 0.003), Quantity { low: 997, expected: 1000, high: 1003 });
    }
}
