//! The answer to "would it hold?": the rehearsal itself, the same with other assumptions, and the largest load that holds.

use serde::Serialize;

use crate::clock::StepTime;
use crate::outcome::Outcome;
use crate::planned::Planned;
use crate::request::Request;
use crate::run::rehearse;
use crate::search::{self, Largest, Unsafe, unsafe_by};
use crate::settings::Settings;

/// Searches rehearse dozens of times: so many requests of the list are enough for them.
pub const SEARCHED: usize = 10_000;

/// Where the time of a step is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceSource {
    /// `--step-time`.
    Given,
    /// What a server printed.
    Measured,
    /// What the card's maker says.
    Estimated,
}

impl PaceSource {
    /// The time of a step may be so many times as long, or as short.
    #[must_use]
    pub const fn doubt(self) -> f64 {
        match self {
            Self::Given => 1.1,
            Self::Measured => 1.25,
            Self::Estimated => 2.0,
        }
    }
}

/// Whether the load is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// No preemption, and the queue is worked off, under every assumption that was tried.
    Yes,
    /// Not under the expected ones.
    No,
    /// Under the expected ones, but not under all.
    Uncertain,
}

/// The same rehearsal with one assumption changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assumed {
    /// What was changed.
    pub what: String,
    /// Blocks that requests can have.
    pub pool_blocks: u32,
    /// The most of them that was held.
    pub peak_blocks: u32,
    /// Preemptions.
    pub preemptions: u64,
    /// Most requests that waited.
    pub longest_queue: u32,
    /// What is wrong.
    pub unsafe_by: Option<Unsafe>,
}

impl Assumed {
    fn of(what: String, o: &Outcome) -> Self {
        Self {
            what,
            pool_blocks: o.pool_blocks,
            peak_blocks: o.peak_blocks,
            preemptions: o.preemptions,
            longest_queue: o.longest_queue,
            unsafe_by: unsafe_by(o),
        }
    }
}

/// The largest load that holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// Of the rate of the requests.
    pub rate: Largest,
    /// Of the length of their prompts.
    pub length: Largest,
    /// The largest `--max-num-seqs` without a preemption at this load, where the set one has some.
    pub sequences: Option<u32>,
    /// Requests that the search rehearsed each time.
    pub requests: u64,
}

/// Settings under a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rehearsed {
    /// Flags that were changed; empty for the launch as it is.
    pub flags: Vec<String>,
    /// Whether it holds.
    pub holds: Holds,
    /// What is wrong at the expected values.
    pub unsafe_by: Option<Unsafe>,
    /// The settings.
    pub settings: Settings,
    /// Bytes of one block over all layers, of one GPU.
    pub bytes_per_block: u64,
    /// What happened.
    pub outcome: Outcome,
    /// The same with other assumptions.
    pub assumed: Vec<Assumed>,
    /// What differs from the engine.
    pub notes: Vec<String>,
}

/// Rehearses a plan: as expected, with the pool at its lower bound, and with slower and faster steps.
///
/// `tell` is called before each part of the work with how many of all parts are done.
#[must_use]
pub fn answer(
    planned: &Planned,
    flags: &[String],
    requests: &[Request],
    time: &StepTime,
    source: PaceSource,
    mut tell: impl FnMut(u32, u32),
) -> Rehearsed {
    let s = &planned.settings;
    let doubt = source.doubt();
    let low = (planned.blocks.0 < s.blocks).then(|| Settings { blocks: planned.blocks.0, ..s.clone() });
    let parts = if low.is_some() { 4 } else { 3 };
    let play = |s: &Settings, time: &StepTime| rehearse(s, requests, time, |_, _, _| {});
    tell(0, parts);
    let outcome = play(s, time);
    let mut assumed = Vec::new();
    for (n, factor) in [1.0 / doubt, doubt].into_iter().enumerate() {
        tell(n as u32 + 1, parts);
        let what = if factor < 1.0 {
            format!("steps take {} as long", share(factor))
        } else {
            format!("steps take {} as long", times(factor))
        };
        assumed.push(Assumed::of(what, &play(s, &time.times(factor))));
    }
    if let Some(low) = low {
        tell(3, parts);
        assumed.push(Assumed::of("the pool is at its lower bound".into(), &play(&low, time)));
    }
    let wrong = unsafe_by(&outcome);
    let holds = match wrong {
        Some(_) => Holds::No,
        None if assumed.iter().any(|a| a.unsafe_by.is_some()) => Holds::Uncertain,
        None => Holds::Yes,
    };
    Rehearsed {
        flags: flags.to_vec(),
        holds,
        unsafe_by: wrong,
        settings: s.clone(),
        bytes_per_block: planned.bytes_per_block,
        outcome,
        assumed,
        notes: planned.notes.clone(),
    }
}

/// The largest load that holds under the expected assumptions.
#[must_use]
pub fn limits(s: &Settings, requests: &[Request], time: &StepTime, preempts: bool) -> Limits {
    let few = requests.get(..SEARCHED.min(requests.len())).unwrap_or(requests);
    Limits {
        rate: search::rate(s, few, time),
        length: search::length(s, few, time),
        sequences: if preempts { search::sequences(s, few, time) } else { None },
        requests: few.len() as u64,
    }
}

fn share(factor: f64) -> String {
    if (factor - 0.5).abs() < 1e-9 { "half".into() } else { format!("{factor:.2} times") }
}

fn times(factor: f64) -> String {
    if (factor - 2.0).abs() < 1e-9 { "twice".into() } else { format!("{factor:.2} times") }
}
