//! What load tools of others write at their end: guidellm, aiperf, `vllm bench serve`, genai-bench, k6, Locust.
//!
//! A file is recognised by its content. Times become seconds. What a tool does not say stays out.

mod csv;
mod json;

use dualplane_gate::document::{Distribution, Requests, Throughput};

/// A file of a tool, at most: with every request in it.
pub const MAX_FILE: u64 = 512 << 20;

/// What a tool measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// Which tool: `guidellm`.
    pub tool: String,
    /// Its version, where it says it.
    pub version: Option<String>,
    /// Seconds that it measured.
    pub seconds: Option<f64>,
    /// Seconds to the first token.
    pub ttft: Option<Distribution>,
    /// Between two tokens.
    pub itl: Option<Distribution>,
    /// Whole requests.
    pub e2e: Option<Distribution>,
    /// How many.
    pub requests: Option<Requests>,
    /// Work done.
    pub throughput: Option<Throughput>,
    /// Requests at once.
    pub concurrency: Option<u32>,
    /// The model.
    pub model: Option<String>,
}

/// Reads a result file; none where it is of none of these tools. A file of several runs of a tool gives its last.
#[must_use]
pub fn read(text: &str) -> Option<Results> {
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    if trimmed.starts_with('{') || trimmed.starts_with('[') {
        return json::read(&serde_json::from_str(trimmed).ok()?);
    }
    csv::read(trimmed)
}

/// A distribution out of points of which some are missing: between two known ones the higher is taken.
fn distribution(n: u64, mean: Option<f64>, points: [Option<f64>; 5]) -> Option<Distribution> {
    let mut filled = points;
    let mut above = None;
    for p in filled.iter_mut().rev() {
        above = p.or(above);
        *p = above;
    }
    let mut low = 0.0_f64;
    let mut next = |i: usize| -> Option<f64> {
        // What is not said beyond the last known point is at least that.
        low = filled.get(i).copied().flatten().unwrap_or(low).max(low);
        Some(low)
    };
    points.iter().flatten().next()?;
    let [p50, p90, p95, p99, max] = [next(0)?, next(1)?, next(2)?, next(3)?, next(4)?];
    let d = Distribution { n: n.max(1), mean: mean.unwrap_or(p50), p50, p90, p95, p99, max };
    [d.mean, d.max].iter().all(|v| v.is_finite() && *v >= 0.0).then_some(d)
}

#[cfg(test)]
mod tests;
