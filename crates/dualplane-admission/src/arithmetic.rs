//! Conversions between counts and shares that saturate instead of wrapping.

/// A count as a number with a fraction. Counts of tokens and bytes stay far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "tokens and bytes stay far below 2^53")]
pub(crate) fn real(n: u64) -> f64 {
    n as f64
}

/// The whole part of a number; what is no count (negative, NaN) is none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
pub(crate) fn floor(x: f64) -> u64 {
    if x.is_nan() { 0 } else { x.max(0.0).floor() as u64 }
}

/// Rounded up.
pub(crate) fn ceil(x: f64) -> u64 {
    floor(x.ceil())
}

/// A share of a count, rounded down.
pub(crate) fn share(n: u64, part: f64) -> u64 {
    floor(real(n) * part.clamp(0.0, 1.0)).min(n)
}

/// The next multiple of a block.
pub(crate) fn whole_blocks(n: u64, block: u64) -> u64 {
    let block = block.max(1);
    n.div_ceil(block).saturating_mul(block)
}
