//! What traffic makes of a pool: the tokens that its requests hold at a moment, and how often they are more than fit.

use dualplane_shape::Cell;
use serde::Serialize;

use super::Traffic;

/// How often the cache runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// The longest requests fit together.
    None,
    /// Only when many long ones meet: less than one moment in a hundred.
    Rare,
    /// In some moments.
    Some,
    /// More often than not.
    Usual,
}

/// What traffic makes of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Demand {
    /// Tokens of all requests together, in half of the moments at most.
    pub p50_tokens: u64,
    /// In 95 of 100 moments.
    pub p95_tokens: u64,
    /// In 99 of 100.
    pub p99_tokens: u64,
    /// Tokens that the pool holds at its lower bound.
    pub pool_tokens: u64,
    /// Requests of the mean length that it holds.
    pub holds: u64,
    /// Requests that run at once: those that there are, as far as the pool and `max_num_seqs` hold them.
    pub runs: u64,
    /// Moments in which more is wanted than the pool holds, per thousand.
    pub over_pool_per_mille: u64,
    /// Requests that are longer than the context, per thousand: rejected, or cut short.
    pub too_long_per_mille: u64,
    /// How often requests are preempted, or wait.
    pub preemption: Preemption,
}

/// Mean and mean of squares of what one request holds at a moment of its life.
///
/// A request lives as long as its answer grows, and holds its prompt and the part of the answer that is there: what is seen at
/// a moment are long answers more often than short ones.
fn moments(cells: &[Cell], own: f64, most: f64) -> (f64, f64) {
    let mut sums = (0.0, 0.0, 0.0);
    for c in cells.iter().filter(|c| c.input < most) {
        let grows = c.output.min(most - c.input).max(1.0);
        let (held, life) = (c.input * own, c.share * grows);
        let first = held + grows / 2.0;
        let second = held * held + held * grows + grows * grows / 3.0;
        sums = (sums.0 + life, sums.1 + life * first, sums.2 + life * second);
    }
    if sums.0 <= 0.0 { (0.0, 0.0) } else { (sums.1 / sums.0, sums.2 / sums.0) }
}

/// A sum of many lengths: skewed to the right, so taken for a gamma distribution, by the cube root of Wilson and Hilferty.
struct Sum {
    mean: f64,
    /// Square of mean over deviation.
    shape: f64,
}

impl Sum {
    fn at(&self, z: f64) -> f64 {
        if !self.shape.is_finite() || self.shape <= 0.0 {
            return self.mean;
        }
        let root = 1.0 - 1.0 / (9.0 * self.shape) + z / (3.0 * self.shape.sqrt());
        self.mean * root.max(0.0).powi(3)
    }

    /// The share of moments above this.
    fn above(&self, tokens: f64) -> f64 {
        if self.mean <= 0.0 || !self.shape.is_finite() {
            return if tokens < self.mean { 1.0 } else { 0.0 };
        }
        let z = ((tokens / self.mean).cbrt() - 1.0 + 1.0 / (9.0 * self.shape)) * 3.0 * self.shape.sqrt();
        tail(z)
    }
}

/// The share of a normal distribution above a point (Abramowitz and Stegun 26.2.17; off by 7.5e-8 at most).
fn tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let sum = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let above = sum * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 0.0 { 1.0 - above } else { above }
}

impl Traffic {
    /// The demand against a pool of so many tokens, by requests of at most `most` tokens of which `seqs` may run.
    #[must_use]
    pub fn demand(&self, pool_tokens: u64, most: u64, seqs: u64) -> Demand {
        let n = self.concurrency.max(1) as f64;
        let shared = self.prefix_percent.min(100) as f64 / 100.0;
        let (mean, squares) = moments(&self.cells, 1.0 - shared, most as f64);
        // What several requests share stands once, for each text that they begin with.
        let inputs: f64 = self.cells.iter().map(|c| c.input.min(most as f64) * c.share).sum();
        let once = inputs * shared * (self.prefixes as f64).min(n);
        // The number itself varies where requests come by chance (Poisson).
        let variance = if self.by_chance { n * squares } else { n * (squares - mean * mean).max(0.0) };
        let sum = Sum { mean: n * mean, shape: n * mean * n * mean / variance };
        let ceiling = n * most as f64;
        let at = |z: f64| (sum.at(z) + once).min(ceiling).round() as u64;
        let (p50, p95, p99) = (at(0.0), at(1.645), at(2.326));
        let all = self.longest().min(most).saturating_mul(self.concurrency);
        let over = if pool_tokens as f64 >= ceiling { 0.0 } else { sum.above(pool_tokens as f64 - once) };
        let preemption = match pool_tokens {
            p if p >= all => Preemption::None,
            p if p >= p99 => Preemption::Rare,
            p if p >= p50 => Preemption::Some,
            _ => Preemption::Usual,
        };
        let longer = self.cells.iter().filter(|c| c.input + c.output > most as f64);
        let holds = ((pool_tokens as f64 - once).max(0.0) / mean.max(1.0)) as u64;
        Demand {
            p50_tokens: p50,
            p95_tokens: p95,
            p99_tokens: p99,
            pool_tokens,
            holds,
            runs: self.concurrency.min(seqs).min(holds),
            over_pool_per_mille: (over * 1000.0).round() as u64,
            too_long_per_mille: (longer.map(|c| c.share).sum::<f64>() * 1000.0).round() as u64,
            preemption,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Shape;

    fn of(more: &str) -> Traffic {
        let text = format!(r#"{{"schema": "dualplane.shape/v1", {more}}}"#);
        Traffic::of(&serde_json::from_str::<Shape>(&text).unwrap()).unwrap()
    }

    const EQUAL: &str = r#""requests": [{"input": 100, "output": 2}]"#;

    #[test]
    fn more_requests_and_smaller_pools_preempt_more() {
        let chat = Traffic::named("chat").unwrap();
        let at = |pool| chat.demand(pool, 40_960, 256);
        assert_eq!(at(400_000).preemption, Preemption::None);
        assert_eq!(at(4_000).preemption, Preemption::Usual);
        let (d, more) = (at(60_000), chat.clone().at_once(64).demand(60_000, 40_960, 256));
        assert!(d.p50_tokens < d.p95_tokens && d.p95_tokens < d.p99_tokens);
        assert!(more.p50_tokens > d.p50_tokens && more.over_pool_per_mille > d.over_pool_per_mille);
        assert!(at(30_000).over_pool_per_mille > at(50_000).over_pool_per_mille);
        assert_eq!(chat.demand(400_000, 40_960, 8).runs, 8);
    }

    #[test]
    fn equal_requests_spread_only_by_their_age() {
        let d = of(&format!(r#""concurrency": 10, {EQUAL}"#)).demand(2_000, 4_096, 256);
        assert!((1_009..=1_011).contains(&d.p50_tokens) && d.p99_tokens < 1_020, "{d:?}");
        assert_eq!((d.over_pool_per_mille, d.runs), (0, 10));
        // Those that come by chance are now more, now fewer.
        let chance = of(&format!(r#""arrival_per_second": 1, "seconds": 10, {EQUAL}"#));
        let d = chance.demand(2_000, 4_096, 256);
        assert!((1_700..1_950).contains(&d.p99_tokens), "{d:?}");
    }

    #[test]
    fn long_answers_are_met_more_often_than_they_come() {
        let t = of(
            r#""concurrency": 100, "requests": [{"input": 10, "output": 10, "weight": 9}, {"input": 10, "output": 1000}]"#,
        );
        // Of 1,090 tokens that are written, 1,000 are of the long ones.
        let d = t.demand(1_000_000, 4_096, 256);
        assert!((45_000..49_000).contains(&d.p50_tokens), "{d:?}");
    }

    #[test]
    fn a_shared_beginning_stands_once() {
        let d = of(&format!(r#""concurrency": 10, "prefix_share": 0.9, {EQUAL}"#)).demand(2_000, 4_096, 256);
        assert!((198..=203).contains(&d.p50_tokens), "{d:?}");
    }

    #[test]
    fn what_is_longer_than_the_context_is_counted() {
        let t = of(
            r#""concurrency": 1, "requests": [{"input": 10, "output": 10}, {"input": 9000, "output": 10}]"#,
        );
        let d = t.demand(100_000, 4_096, 256);
        assert_eq!(d.too_long_per_mille, 500);
        assert!(d.p99_tokens < 30);
    }
}
