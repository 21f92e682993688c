//! The file of a shape of requests: a joint histogram of prompts and answers, or two points of each, and how many come.

use serde::Deserialize;

use super::{Cell, Traffic};

/// What `schema` of a file says.
pub const SHAPE: &str = "dualplane.shape/v1";

/// No histogram needs more cells.
const MAX_CELLS: usize = 10_000;
/// Points at which a length that is given by two points is read: the middles of so many equal parts.
const PARTS: u32 = 16;
/// So many deviations above the median lie 99 of 100.
const Z99: f64 = 2.326_347_9;

/// A length by two of its points; its logarithm is taken for normal.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Points {
    p50: u64,
    p99: u64,
}

/// One cell of the histogram: mean lengths of its requests, and how many they are.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requests {
    input: u64,
    output: u64,
    #[serde(default = "one")]
    weight: f64,
}

/// A shape as its file says it (`docs/shape.schema.json`).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    schema: String,
    #[serde(default = "unnamed")]
    name: String,
    #[serde(default)]
    measured: bool,
    #[serde(default)]
    source: String,
    concurrency: Option<u64>,
    arrival_per_second: Option<f64>,
    seconds: Option<f64>,
    #[serde(default)]
    prefix_share: f64,
    prefixes: Option<u64>,
    input: Option<Points>,
    output: Option<Points>,
    #[serde(default)]
    requests: Vec<Requests>,
}

const fn one() -> f64 {
    1.0
}

fn unnamed() -> String {
    "own".into()
}

impl Shape {
    /// What it says, checked.
    ///
    /// # Errors
    /// A sentence that says what contradicts.
    pub fn traffic(self) -> Result<Traffic, String> {
        if self.schema != SHAPE {
            return Err(format!("schema is `{}` and not `{SHAPE}`", self.schema));
        }
        if !(0.0..=1.0).contains(&self.prefix_share) {
            return Err(format!("prefix_share is {}, and a share lies between 0 and 1", self.prefix_share));
        }
        let cells = self.cells()?;
        let (concurrency, by_chance) = self.concurrency()?;
        let point = |of: fn(&Cell) -> f64, share: f64| quantile(&cells, of, share);
        Ok(Traffic {
            input_p50: point(|c| c.input, 0.5),
            input_p99: point(|c| c.input, 0.99),
            output_p50: point(|c| c.output, 0.5),
            output_p99: point(|c| c.output, 0.99),
            concurrency,
            prefix_percent: (self.prefix_share * 100.0).round() as u64,
            prefixes: self.prefixes.unwrap_or(1).max(1),
            by_chance,
            measured: self.measured,
            source: self.source,
            name: self.name,
            cells,
        })
    }

    /// Requests at once, and whether they come by chance: those that arrive in the time that one takes.
    fn concurrency(&self) -> Result<(u64, bool), String> {
        match (self.concurrency, self.arrival_per_second, self.seconds) {
            (Some(0), ..) => Err("concurrency is 0".into()),
            (Some(n), ..) => Ok((n, false)),
            (None, Some(rate), Some(seconds)) if rate > 0.0 && seconds > 0.0 => {
                Ok(((rate * seconds).ceil() as u64, true))
            }
            _ => Err("concurrency is missing, or arrival_per_second with seconds".into()),
        }
    }

    fn cells(&self) -> Result<Vec<Cell>, String> {
        let cells = match (self.requests.as_slice(), self.input, self.output) {
            ([], Some(input), Some(output)) => {
                let outputs = spread("output", output)?;
                let share = 1.0 / f64::from(PARTS * PARTS);
                let row = |input: f64| {
                    outputs
                        .iter()
                        .map(move |output| Cell { input, output: *output, share })
                        .collect::<Vec<_>>()
                };
                spread("input", input)?.into_iter().flat_map(row).collect()
            }
            ([], ..) => return Err("requests are missing, or input and output with p50 and p99".into()),
            (_, Some(_), _) | (_, _, Some(_)) => {
                return Err("requests stand beside input or output: one of the two".into());
            }
            (list, ..) if list.len() > MAX_CELLS => return Err(format!("{} cells of requests", list.len())),
            (list, ..) => histogram(list)?,
        };
        Ok(cells)
    }
}

fn histogram(list: &[Requests]) -> Result<Vec<Cell>, String> {
    if list.iter().any(|r| !r.weight.is_finite() || r.weight < 0.0) {
        return Err("a weight is negative or no number".into());
    }
    let sum: f64 = list.iter().map(|r| r.weight).sum();
    if sum <= 0.0 {
        return Err("all weights are 0".into());
    }
    let cell = |r: &Requests| Cell { input: r.input as f64, output: r.output as f64, share: r.weight / sum };
    Ok(list.iter().map(cell).collect())
}

/// Lengths of equal share.
fn spread(name: &str, p: Points) -> Result<Vec<f64>, String> {
    if p.p50 == 0 || p.p99 < p.p50 {
        return Err(format!("{name}: p99 {} is below p50 {}, or p50 is 0", p.p99, p.p50));
    }
    let deviation = (p.p99 as f64 / p.p50 as f64).ln() / Z99;
    // The middle of each part; the last stands for a fat tail and takes its p99.
    let at = |i: u32| {
        let share = (f64::from(i) + 0.5) / f64::from(PARTS);
        (p.p50 as f64) * (deviation * normal(share)).exp()
    };
    let mut all: Vec<f64> = (0..PARTS).map(at).collect();
    if let Some(last) = all.last_mut() {
        *last = p.p99 as f64;
    }
    Ok(all)
}

/// The point below which this share of a normal distribution lies (Abramowitz and Stegun 26.2.23; off by 4.5e-4 at most).
fn normal(share: f64) -> f64 {
    let low = share < 0.5;
    let tail = if low { share } else { 1.0 - share };
    let t = (-2.0 * tail.ln()).sqrt();
    let above = t
        - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
            / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t);
    if low { -above } else { above }
}

/// The length that this share of the requests does not exceed.
fn quantile(cells: &[Cell], of: fn(&Cell) -> f64, share: f64) -> u64 {
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

    fn read(text: &str) -> Result<Traffic, String> {
        serde_json::from_str::<Shape>(text).map_err(|e| e.to_string())?.traffic()
    }

    #[test]
    fn a_histogram_keeps_prompts_and_answers_together() {
        let t = read(
            r#"{"schema": "dualplane.shape/v1", "concurrency": 4, "requests": [
            {"input": 100, "output": 10, "weight": 90}, {"input": 4000, "output": 500, "weight": 10}]}"#,
        )
        .unwrap();
        assert_eq!((t.input_p50, t.input_p99, t.output_p50, t.output_p99), (100, 4000, 10, 500));
    }

    #[test]
    fn two_points_are_met() {
        let t = read(
            r#"{"schema": "dualplane.shape/v1", "arrival_per_second": 2, "seconds": 8.5,
            "input": {"p50": 1000, "p99": 8000}, "output": {"p50": 200, "p99": 900}}"#,
        )
        .unwrap();
        assert!(t.input_p50.abs_diff(1000) < 120 && t.input_p99 == 8000, "{t:?}");
        assert_eq!((t.concurrency, t.by_chance), (17, true));
    }

    #[test]
    fn what_contradicts_is_told() {
        let of = |text: &str| read(&format!(r#"{{"schema": "dualplane.shape/v1", {text}}}"#)).unwrap_err();
        let points = r#""input": {"p50": 10, "p99": 20}, "output": {"p50": 1, "p99": 2}"#;
        assert!(of(points).contains("concurrency is missing"));
        assert!(of(r#""concurrency": 1"#).contains("requests are missing"));
        assert!(
            of(&format!(r#""concurrency": 1, "prefix_share": 30, {points}"#)).contains("between 0 and 1")
        );
        assert!(of(&format!(r#""concurency": 1, {points}"#)).contains("concurency"));
        assert!(
            of(r#""concurrency": 1, "requests": [{"input": 1, "output": 1, "weight": 0}]"#)
                .contains("weights")
        );
        assert!(read(r#"{"schema": "dualplane.shape/v2", "concurrency": 1}"#).unwrap_err().contains("v2"));
    }

    #[test]
    fn the_normal_distribution_is_met() {
        for (share, z) in [(0.5, 0.0), (0.95, 1.645), (0.01, -2.326)] {
            assert!((normal(share) - z).abs() < 1e-3);
        }
    }
}
