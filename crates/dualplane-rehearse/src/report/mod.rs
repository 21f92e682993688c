//! Rehearsals as text, as JSON and as a picture.

mod json;
mod plot;
mod svg;
mod text;

pub use json::{REHEARSAL, json};
pub use svg::svg;
pub use text::text;

use serde::Serialize;

use crate::answer::{Limits, PaceSource, Rehearsed};
use crate::clock::StepTime;
use crate::request::Request;

/// The requests in a few figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Where they are from.
    pub source: String,
    /// The seed by which they were drawn, where they were.
    pub seed: Option<u64>,
    /// How many.
    pub count: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// Requests a second.
    pub per_second: f64,
    /// Half of the prompts are at most so long, in tokens.
    pub input_p50: u32,
    /// 99 of 100.
    pub input_p99: u32,
    /// Half of the answers.
    pub output_p50: u32,
    /// 99 of 100.
    pub output_p99: u32,
}

impl Load {
    /// Of these requests.
    #[must_use]
    pub fn of(source: String, seed: Option<u64>, requests: &[Request]) -> Self {
        let points = |of: fn(&Request) -> u32| {
            let mut all: Vec<u32> = requests.iter().map(of).collect();
            all.sort_unstable();
            let at = |share: f64| {
                let place = (all.len() as f64 * share).ceil() as usize;
                all.get(place.saturating_sub(1)).copied().unwrap_or(0)
            };
            (at(0.5), at(0.99))
        };
        let (input_p50, input_p99) = points(|r| r.input);
        let (output_p50, output_p99) = points(|r| r.output);
        let seconds = match (requests.first(), requests.last()) {
            (Some(a), Some(b)) => (b.at - a.at).max(0.0),
            _ => 0.0,
        };
        Self {
            source,
            seed,
            count: requests.len() as u64,
            seconds,
            per_second: if seconds > 0.0 { requests.len() as f64 / seconds } else { 0.0 },
            input_p50,
            input_p99,
            output_p50,
            output_p99,
        }
    }
}

/// The time of a step, and where it is from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// Where it is from.
    pub source: PaceSource,
    /// The time.
    #[serde(flatten)]
    pub time: StepTime,
}

/// RAM of the host that requests and their cache take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HostBuffers {
    /// What one server holds without requests, where the plan knows it.
    pub steady_bytes: Option<u64>,
    /// The most that requests of one server have waiting in its queue, at the size measured for a token.
    pub queue_bytes: u64,
    /// Size of the buffer for cached blocks in RAM.
    pub offload_bytes: u64,
    /// How much of it the rehearsed requests fill.
    pub offload_filled_bytes: u64,
}

/// All that is reported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rehearsal {
    /// Model id or path.
    pub model: String,
    /// Engine and version.
    pub engine: String,
    /// The card.
    pub gpu: String,
    /// Servers of the same kind that share the requests; what follows is of one of them.
    pub replicas: u32,
    /// The requests of one server.
    pub load: Load,
    /// The time of a step.
    pub step_time: Pace,
    /// As it is launched.
    pub launch: Rehearsed,
    /// With other flags.
    pub proposals: Vec<Rehearsed>,
    /// The largest load that holds.
    pub limits: Option<Limits>,
    /// RAM of the host.
    pub host: HostBuffers,
    /// What is missing for a better answer, with what would give it.
    pub missing: Vec<String>,
}
