//! Quantities of memory: parsing what logs, kernels and Kubernetes print, and printing them for people.
//!
//! Everything is held in bytes as `u64`. PyTorch and vLLM print binary units (`GiB`; older vLLM wrote `GB`
//! and meant 2^30), Kubernetes prints `Gi` or decimal `G`, the kernel prints `kB` and means KiB.

use std::fmt;

use serde::Serialize;

/// An amount of memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Bytes(pub u64);

/// One KiB.
pub const KIB: u64 = 1 << 10;
/// One MiB.
pub const MIB: u64 = 1 << 20;
/// One GiB.
pub const GIB: u64 = 1 << 30;

/// The next round figure above, for the top of an axis: of bytes one that is round in KiB, MiB, GiB or TiB.
#[must_use]
pub fn round_above(most: f64, bytes: bool) -> f64 {
    let base = if bytes { 2_f64.powf((most.max(1.0).log2() / 10.0).floor() * 10.0) } else { 1.0 };
    let scaled = most / base;
    let ten = 10_f64.powf(scaled.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.into_iter().find(|s| s * ten >= scaled * 1.02).unwrap_or(10.0);
    step * ten * base
}

impl Bytes {
    /// `self - other`, or zero where `other` is the larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, capped at the largest value.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This amount times a factor; a negative or unordered factor gives zero.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self::from_f64(self.0 as f64 * factor)
    }

    /// The share of `whole` that this is, 0 where `whole` is 0.
    #[must_use]
    pub fn share_of(self, whole: Self) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }

    /// Rounds up to a whole number of `step` bytes, so that a manifest shows a round figure.
    #[must_use]
    pub fn round_up_to(self, step: u64) -> Self {
        Self(self.0.div_ceil(step.max(1)).saturating_mul(step.max(1)))
    }

    /// A non-negative finite float as bytes; anything else is zero.
    #[must_use]
    pub fn from_f64(value: f64) -> Self {
        // `as` saturates: NaN and negatives become 0, infinity the largest value.
        Self(value as u64)
    }

    /// As a Kubernetes quantity: whole GiB, else MiB rounded up; below one MiB exactly.
    #[must_use]
    pub fn k8s(self) -> String {
        if self.0 != 0 && self.0.is_multiple_of(GIB) {
            format!("{}Gi", self.0 / GIB)
        } else if self.0 < MIB {
            if self.0 != 0 && self.0.is_multiple_of(KIB) {
                format!("{}Ki", self.0 / KIB)
            } else {
                self.0.to_string()
            }
        } else {
            format!("{}Mi", self.0.div_ceil(MIB))
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.0 as f64;
        if self.0 >= GIB {
            write!(f, "{:.2} GiB", b / GIB as f64)
        } else if self.0 >= MIB {
            write!(f, "{:.2} MiB", b / MIB as f64)
        } else if self.0 >= KIB {
            write!(f, "{:.1} KiB", b / KIB as f64)
        } else {
            write!(f, "{} B", self.0)
        }
    }
}

/// Bytes in one unit word as logs write it. `KB MB GB TB` are powers of ten; callers that know better say `GiB`.
#[must_use]
pub fn unit_bytes(unit: &str) -> Option<f64> {
    Some(match unit {
        "B" | "byte" | "bytes" | "Bytes" => 1.0,
        // The kernel's and /proc's kB are 1024 bytes.
        "kB" | "KiB" | "Ki" | "K" => KIB as f64,
        "MiB" | "Mi" => MIB as f64,
        "GiB" | "Gi" => GIB as f64,
        "TiB" | "Ti" => (GIB as f64) * 1024.0,
        "KB" | "k" => 1e3,
        "MB" | "M" => 1e6,
        "GB" | "G" => 1e9,
        "TB" | "T" => 1e12,
        _ => return None,
    })
}

/// Reads `138.00 MiB`, `16.2GiB`, `104857600kB` or a bare number in `default_unit`.
#[must_use]
pub fn parse_memory(text: &str, default_unit: Option<&str>) -> Option<Bytes> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | 'e')))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let unit = unit.trim();
    let value: f64 = number.replace(',', "").parse().ok()?;
    let factor = if unit.is_empty() { unit_bytes(default_unit.unwrap_or("B"))? } else { unit_bytes(unit)? };
    (value >= 0.0 && value.is_finite()).then(|| Bytes::from_f64(value * factor))
}

/// Reads a Kubernetes quantity (`6Gi`, `500M`, `1e9`, `128974848`, `100m` of a byte).
///
/// Source: Kubernetes API machinery, `resource.Quantity`: `Ki Mi Gi Ti Pi` binary, `k M G T P` decimal, `m` milli.
#[must_use]
pub fn parse_k8s_quantity(text: &str) -> Option<f64> {
    let text = text.trim();
    let split =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(split)?;
    if let Ok(plain) = text.parse::<f64>() {
        return (plain.is_finite() && plain >= 0.0).then_some(plain);
    }
    let value: f64 = number.parse().ok()?;
    let factor = match suffix {
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => KIB as f64,
        "Mi" => MIB as f64,
        "Gi" => GIB as f64,
        "Ti" => GIB as f64 * 1024.0,
        "Pi" => GIB as f64 * 1024.0 * 1024.0,
        _ => return None,
    };
    let value = value * factor;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// A Kubernetes memory quantity as bytes.
#[must_use]
pub fn parse_k8s_memory(text: &str) -> Option<Bytes> {
    parse_k8s_quantity(text).map(Bytes::from_f64)
}

/// Writes a whole number with thousands separators, as the engines do for tokens.
#[must_use]
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_as_logs_print_it() {
        for (text, default, want) in [
            ("138.00 MiB", None, Some(138 * MIB)),
            ("12.66 GiB", None, Some((12.66 * GIB as f64) as u64)),
            ("104857600kB", None, Some(100 * GIB)),
            ("3.22", Some("GiB"), Some((3.22 * GIB as f64) as u64)),
            ("94.78", Some("GB"), Some(94_780_000_000)),
            ("67,108,864 bytes", None, Some(64 * MIB)),
            ("-1.2 GiB", None, None),
            ("GiB", None, None),
            ("12 parsecs", None, None),
        ] {
            assert_eq!(parse_memory(text, default).map(|b| b.0), want, "{text}");
        }
    }

    #[test]
    fn kubernetes_quantities() {
        for (text, want) in [
            ("6Gi", Some(6 * GIB)),
            ("500M", Some(500_000_000)),
            ("128974848", Some(128_974_848)),
            ("1e3", Some(1000)),
            ("83412Ki", Some(83412 * KIB)),
            ("12Xi", None),
            ("-1", None),
        ] {
            assert_eq!(parse_k8s_memory(text).map(|b| b.0), want, "{text}");
        }
        assert_eq!(Bytes(6 * GIB).k8s(), "6Gi");
        for (bytes, want) in [
            (1500 * MIB, "1500Mi"),
            (MIB, "1Mi"),
            (MIB - 1, "1048575"),
            (512 * KIB, "512Ki"),
            (4096, "4Ki"),
            (100, "100"),
            (0, "0"),
        ] {
            assert_eq!(Bytes(bytes).k8s(), want);
            assert_eq!(parse_k8s_memory(want), Some(Bytes(bytes)), "{want} is what it was");
        }
    }

    #[test]
    fn people_read_thousands() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
        assert_eq!(Bytes(3 * GIB / 2).to_string(), "1.50 GiB");
    }
}
