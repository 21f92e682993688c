//! How far a candidate is from a baseline, and what of that is chance.
//!
//! Repeated runs say it best: the difference between runs of the same build is the noise that counts. Where there is one run
//! on each side, the windows of these runs are drawn again in blocks, which keeps what they remember of each other; what
//! differs from one run to the next is not in that, and [`From`] says so.

use crate::random::Random;
use crate::rank::{quantile, sorted};
use crate::student::t_quantile;

/// Draws of a bootstrap: the ends of an interval of 99 % are steady to a few percent of its width.
const DRAWS: usize = 2000;
/// Windows that are drawn, at most; more are put together first.
const WINDOWS: usize = 200;
/// Fewer windows than these say nothing of their noise.
const LEAST_WINDOWS: usize = 5;

/// What an interval was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Repeated runs.
    Repeats,
    /// Windows of one run on each side.
    Windows,
}

/// A relative difference: 0.08 is 8 % more than the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean of the baseline.
    pub baseline: f64,
    /// Mean of the candidate.
    pub candidate: f64,
    /// Their difference as a share of the baseline.
    pub relative: f64,
    /// Lower end of the interval of that.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Its confidence.
    pub confidence: f64,
    /// Effect size: of all pairs, the share where the candidate is higher less that where it is lower (Cliff's delta).
    pub delta: f64,
    /// Values of the baseline.
    pub n_baseline: usize,
    /// Values of the candidate.
    pub n_candidate: usize,
    /// What they are.
    pub from: From,
}

/// Of repeated runs, by Student's interval with what both scatter. One side may be a single run: it is then taken to scatter as
/// the other. None where
/// both are, or where the baseline is 0.
#[must_use]
pub fn repeats(baseline: &[f64], candidate: &[f64], confidence: f64) -> Option<Difference> {
    let (b, c) = (sorted(baseline.iter().copied()), sorted(candidate.iter().copied()));
    let (mean_b, mean_c) = (mean(&b)?, mean(&c)?);
    if mean_b <= 0.0 || b.len().max(c.len()) < 2 {
        return None;
    }
    let (nb, nc) = (b.len() as f64, c.len() as f64);
    // Noise is taken by share, so that one side can lend it to the other.
    let share = |v: &[f64], mean: f64| (v.len() > 1 && mean > 0.0).then(|| variance(v, mean) / (mean * mean));
    let (own_b, own_c) = (share(&b, mean_b), share(&c, mean_c));
    // Runs of two builds scatter alike: both together say it better than each.
    let freedom = (nb - 1.0) + (nc - 1.0);
    let sum = own_b.unwrap_or_default() * (nb - 1.0) + own_c.unwrap_or_default() * (nc - 1.0);
    let relative = mean_c / mean_b - 1.0;
    let deviation = (mean_c / mean_b) * (sum / freedom * (1.0 / nb + 1.0 / nc)).sqrt();
    let wide = t_quantile(0.5 + 0.5 * confidence, freedom) * deviation;
    Some(Difference {
        baseline: mean_b,
        candidate: mean_c,
        relative,
        low: relative - wide,
        high: relative + wide,
        confidence,
        delta: delta(&b, &c),
        n_baseline: b.len(),
        n_candidate: c.len(),
        from: From::Repeats,
    })
}

/// Of the windows of one run on each side, in order of time, by drawing blocks of them. None where there are fewer than
/// five, or where the baseline is 0.
#[must_use]
pub fn windows(baseline: &[f64], candidate: &[f64], confidence: f64, seed: u64) -> Option<Difference> {
    let (b, c) = (thinned(baseline), thinned(candidate));
    let (mean_b, mean_c) = (mean(&b)?, mean(&c)?);
    if mean_b <= 0.0 || b.len().min(c.len()) < LEAST_WINDOWS {
        return None;
    }
    let mut random = Random::new(seed);
    let mut draws = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let (x, y) = (drawn(&b, &mut random), drawn(&c, &mut random));
        if x > 0.0 {
            draws.push(y / x - 1.0);
        }
    }
    let draws = sorted(draws);
    let tail = 0.5 * (1.0 - confidence);
    Some(Difference {
        baseline: mean_b,
        candidate: mean_c,
        relative: mean_c / mean_b - 1.0,
        low: quantile(&draws, tail)?,
        high: quantile(&draws, 1.0 - tail)?,
        confidence,
        delta: delta(&sorted(b.iter().copied()), &sorted(c.iter().copied())),
        n_baseline: b.len(),
        n_candidate: c.len(),
        from: From::Windows,
    })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn variance(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0).max(1.0)
}

/// At most [`WINDOWS`] values: neighbours together.
fn thinned(values: &[f64]) -> Vec<f64> {
    let all: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    all.chunks(all.len().div_ceil(WINDOWS).max(1)).filter_map(mean).collect()
}

/// The mean of a draw: blocks of neighbours, as long as the cube root of all, around the end to the beginning.
fn drawn(values: &[f64], random: &mut Random) -> f64 {
    let n = values.len();
    let block = ((n as f64).cbrt().ceil() as usize).max(1);
    let mut sum = 0.0;
    let mut from = 0;
    for i in 0..n {
        if i % block == 0 {
            from = random.below(n);
        }
        sum += values.get((from + i % block) % n.max(1)).copied().unwrap_or_default();
    }
    sum / n.max(1) as f64
}

/// Cliff's delta of sorted values.
fn delta(baseline: &[f64], candidate: &[f64]) -> f64 {
    let pairs = baseline.len() as f64 * candidate.len() as f64;
    let sum: f64 = candidate
        .iter()
        .map(|c| {
            let below = baseline.partition_point(|b| b < c) as f64;
            let above = (baseline.len() - baseline.partition_point(|b| b <= c)) as f64;
            below - above
        })
        .sum();
    if pairs > 0.0 { sum / pairs } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs(n: usize, mean: f64, noise: f64, seed: u64) -> Vec<f64> {
        let mut r = Random::new(seed);
        (0..n).map(|_| mean * (1.0 + noise * r.normal())).collect()
    }

    #[test]
    fn eight_percent_stand_out_of_one_percent_of_noise() {
        for seed in 0..50 {
            let d = repeats(&runs(5, 8e9, 0.01, seed), &runs(3, 8.64e9, 0.01, seed + 1000), 0.99).unwrap();
            assert!(d.low > 0.0 && (d.relative - 0.08).abs() < 0.04, "{d:?}");
            assert_eq!(d.delta, 1.0);
        }
        // A single run of the candidate is held against what the baseline scatters.
        let d = repeats(&[1.0, 1.01, 0.99, 1.0, 1.005], &[1.08], 0.99).unwrap();
        assert!(d.low > 0.03 && d.n_candidate == 1, "{d:?}");
    }

    /// The interval of 99 % misses a true difference of none about once in a hundred.
    #[test]
    fn the_interval_keeps_its_confidence() {
        for (nb, nc) in [(5, 5), (5, 1), (3, 3), (2, 4)] {
            let misses = (0..2000_u64)
                .filter(|seed| {
                    let d = repeats(&runs(nb, 5.0, 0.1, *seed), &runs(nc, 5.0, 0.1, seed + 100_000), 0.99)
                        .unwrap();
                    d.low > 0.0 || d.high < 0.0
                })
                .count();
            assert!(misses <= 40, "{nb} and {nc}: {misses} of 2000");
        }
    }

    #[test]
    fn windows_of_one_run_tell_what_stands_out_of_them() {
        let d = windows(&runs(60, 100.0, 0.05, 1), &runs(60, 108.0, 0.05, 2), 0.99, 7).unwrap();
        assert!(d.low > 0.0 && d.high < 0.16, "{d:?}");
        assert_eq!(d, windows(&runs(60, 100.0, 0.05, 1), &runs(60, 108.0, 0.05, 2), 0.99, 7).unwrap());
        assert_eq!(windows(&[1.0; 4], &[1.0; 60], 0.99, 7), None);
        assert_eq!(repeats(&[1.0], &[2.0], 0.99), None);
        assert_eq!(repeats(&[0.0, 0.0], &[2.0], 0.99), None);
    }

    proptest! {
        #[test]
        fn any_values_make_an_interval_around_the_difference(
            b in prop::collection::vec(prop::num::f64::ANY, 0..20),
            c in prop::collection::vec(prop::num::f64::ANY, 0..20),
            seed in any::<u64>(),
        ) {
            for d in [repeats(&b, &c, 0.99), windows(&b, &c, 0.99, seed)].into_iter().flatten() {
                prop_assert!((-1.0..=1.0).contains(&d.delta));
            }
        }

        #[test]
        fn order_and_unit_do_not_matter(mut b in prop::collection::vec(1.0..9.0f64, 2..9), c in prop::collection::vec(1.0..9.0f64, 2..9)) {
            let one = repeats(&b, &c, 0.99).unwrap();
            b.reverse();
            let scaled: Vec<f64> = b.iter().map(|v| v * 1024.0).collect();
            let other = repeats(&scaled, &c.iter().map(|v| v * 1024.0).collect::<Vec<_>>(), 0.99).unwrap();
            prop_assert!((one.relative - other.relative).abs() < 1e-9 && (one.low - other.low).abs() < 1e-6);
        }
    }
}
