//! Student's t distribution: how wide an interval must be that holds a mean with some confidence.

/// Above this many degrees of freedom, it is the normal distribution to three digits.
const NORMAL: f64 = 10_000.0;
/// Enough for every shape up to [`NORMAL`].
const STEPS: u32 = 500;

/// The value below which a share of the distribution lies. A share outside of (0, 1) is moved inside.
#[must_use]
pub fn t_quantile(share: f64, degrees: f64) -> f64 {
    let share = if share.is_nan() { 0.5 } else { share.clamp(1e-12, 1.0 - 1e-12) };
    let degrees = if degrees.is_nan() { 1.0 } else { degrees.clamp(1.0, NORMAL) };
    if share < 0.5 {
        return -t_quantile(1.0 - share, degrees);
    }
    let mut high = 1.0;
    while t_below(high, degrees) < share && high < 1e15 {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Halving reaches the last digit of a float within this.
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if t_below(middle, degrees) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The value below which a share of the normal distribution lies.
#[must_use]
pub fn normal_quantile(share: f64) -> f64 {
    t_quantile(share, NORMAL)
}

/// The share of the distribution below `t >= 0`.
fn t_below(t: f64, degrees: f64) -> f64 {
    1.0 - 0.5 * beta_share(degrees / (degrees + t * t), 0.5 * degrees, 0.5)
}

/// The regularised incomplete beta function.
fn beta_share(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// Its continued fraction, by the modified method of Lentz.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            value *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function above 0: Stirling's series, reached by the recurrence.
fn ln_gamma(x: f64) -> f64 {
    let mut x = x;
    let mut shift = 0.0;
    while x < 12.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let i = 1.0 / (x * x);
    let series = (1.0 / 12.0 - i * (1.0 / 360.0 - i * (1.0 / 1260.0 - i / 1680.0))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the tables that statistics books print.
    #[test]
    fn the_printed_tables_hold() {
        for (share, degrees, t) in [
            (0.975, 1.0, 12.706),
            (0.995, 1.0, 63.657),
            (0.975, 2.0, 4.303),
            (0.95, 4.0, 2.132),
            (0.995, 4.0, 4.604),
            (0.99, 9.0, 2.821),
            (0.975, 30.0, 2.042),
            (0.995, 120.0, 2.617),
        ] {
            assert!(
                (t_quantile(share, degrees) - t).abs() < 0.001,
                "{share} {degrees}: {}",
                t_quantile(share, degrees)
            );
            assert!((t_quantile(1.0 - share, degrees) + t).abs() < 0.001);
        }
        assert!((normal_quantile(0.975) - 1.960).abs() < 0.001);
        assert!((normal_quantile(0.995) - 2.576).abs() < 0.002);
        assert!(t_quantile(0.5, 7.0).abs() < 1e-9);
        for odd in [f64::NAN, -1.0, 2.0, f64::INFINITY] {
            assert!(t_quantile(odd, odd).is_finite());
        }
    }
}
