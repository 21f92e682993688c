//! The lengths of a shape as cells: those of its histogram, or those between its two points.

use crate::shape::{MAX_CELLS, Points, Requests, Shape};

/// Points at which a length that is given by two points is read: the middles of so many equal parts.
const PARTS: u32 = 16;
/// So many deviations above the median lie 99 of 100.
const Z99: f64 = 2.326_347_9;

/// Requests of one prompt and answer length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of the answer.
    pub output: f64,
    /// Share of all requests.
    pub share: f64,
}

impl Shape {
    /// Its cells; their shares add up to 1.
    ///
    /// # Errors
    /// A sentence that says what contradicts.
    pub fn cells(&self) -> Result<Vec<Cell>, String> {
        match (self.requests.as_slice(), self.input, self.output) {
            ([], Some(input), Some(output)) => {
                let outputs = spread("output", output)?;
                let share = 1.0 / f64::from(PARTS * PARTS);
                let row = |input: f64| {
                    outputs
                        .iter()
                        .map(move |output| Cell { input, output: *output, share })
                        .collect::<Vec<_>>()
                };
                Ok(spread("input", input)?.into_iter().flat_map(row).collect())
            }
            ([], ..) => Err("requests are missing, or input and output with p50 and p99".into()),
            (_, Some(_), _) | (_, _, Some(_)) => {
                Err("requests stand beside input or output: one of the two".into())
            }
            (list, ..) if list.len() > MAX_CELLS => Err(format!("{} cells of requests", list.len())),
            (list, ..) => histogram(list),
        }
    }
}

fn histogram(list: &[Requests]) -> Result<Vec<Cell>, String> {
    if list.iter().any(|r| !r.weight.is_finite() || r.weight < 0.0) {
        return Err("a weight is negative or no number".into());
    }
    let sum: f64 = list.iter().map(|r| r.weight).sum();
    if !(sum.is_finite() && sum > 0.0) {
        return Err("all weights are 0, or their sum is no number".into());
    }
    let cell = |r: &Requests| Cell { input: r.input as f64, output: r.output as f64, share: r.weight / sum };
    Ok(list.iter().map(cell).collect())
}

/// Lengths of equal share.
fn spread(name: &str, p: Points) -> Result<Vec<f64>, String> {
    if p.p50 == 0 || p.p99 < p.p50 {
        return Err(format!("{name}: p99 {} is below p50 {}, or p50 is 0", p.p99, p.p50));
    }
    // The middle of each part; the last stands for a fat tail and takes its p99.
    let at = |i: u32| {
        let share = (f64::from(i) + 0.5) / f64::from(PARTS);
        (p.p50 as f64) * (deviation(p) * normal(share)).exp()
    };
    let mut all: Vec<f64> = (0..PARTS).map(at).collect();
    if let Some(last) = all.last_mut() {
        *last = p.p99 as f64;
    }
    Ok(all)
}

/// Deviation of the logarithm of a length.
pub(crate) fn deviation(p: Points) -> f64 {
    (p.p99 as f64 / p.p50 as f64).ln() / Z99
}

/// The point below which this share of a normal distribution lies (Abramowitz and Stegun 26.2.23; off by 4.5e-4 at most).
pub(crate) fn normal(share: f64) -> f64 {
    let low = share < 0.5;
    let tail = if low { share } else { 1.0 - share };
    let t = (-2.0 * tail.ln()).sqrt();
    let above = t
        - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
            / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t);
    if low { -above } else { above }
}

/// The length that this share of the requests does not exceed.
#[must_use]
pub fn quantile(cells: &[Cell], of: fn(&Cell) -> f64, share: f64) -> u64 {
    let mut sorted: Vec<(f64, f64)> = cells.iter().map(|c| (of(c), c.share)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    for (length, part) in &sorted {
        sum += part;
        if sum >= share - 1e-9 {
            return length.round() as u64;
        }
    }
    sorted.last().map_or(0, |(length, _)| length.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_met() {
        for (share, z) in [(0.5, 0.0), (0.95, 1.645), (0.01, -2.326)] {
            assert!((normal(share) - z).abs() < 1e-3);
        }
    }
}
