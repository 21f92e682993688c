//! Integer arithmetic that cannot overflow or divide by zero: sizes come from files that anybody may have written.

/// The product, at most [`u64::MAX`].
pub(crate) fn mul<const N: usize>(factors: [u64; N]) -> u64 {
    factors.into_iter().fold(1, u64::saturating_mul)
}

/// `a / b` rounded up; `a` where `b` is 0.
pub(crate) const fn ceil_div(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { a.div_ceil(b) }
}

/// `a / b` rounded down; `a` where `b` is 0.
pub(crate) const fn floor_div(a: u64, b: u64) -> u64 {
    match a.checked_div(b) {
        Some(quotient) => quotient,
        None => a,
    }
}

/// The least multiple of `step` that is not below `a`.
pub(crate) const fn round_up(a: u64, step: u64) -> u64 {
    ceil_div(a, step).saturating_mul(if step == 0 { 1 } else { step })
}

/// Greatest common divisor.
pub(crate) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Least common multiple, at most [`u64::MAX`].
pub(crate) const fn lcm(a: u64, b: u64) -> u64 {
    match a.checked_div(gcd(a, b)) {
        Some(part) => part.saturating_mul(b),
        None => 0,
    }
}
