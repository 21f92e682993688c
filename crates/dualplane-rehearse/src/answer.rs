//! The answer to "would it hold?": the rehearsal itself, the same with other assumptions, and the largest load that holds.

use serde::Serialize;

use crate::clock::StepTime;
use crate::outcome::Outcome;
use crate::planned::Planned;
use crate::request::Request;
use crate::run::rehearse;
use crate::search::{self, Largest, Unsafe, wrong_by};
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
    /// No preemption, nobody refused, and the queue is worked off, under every assumption that was tried.
    Yes,
    /// Under none of them.
    No,
    /// Under some of them: what is assumed decides.
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
            unsafe_by: wrong_by(o),
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
    /// The largest `--max-num-seqs` without a preemption at this load, where the set one has some; of slots that share a cache
    /// the most at which no answer breaks off.
    pub sequences: Option<u32>,
    /// Requests that the search rehearsed each time.
    pub requests: u64,
}

/// Settings under a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rehearsed {
    /// Flags that were changed; empty for the launch as it is.
    pub flags: Vec<String>,
    /// What the report of a death advises, in its words, where these flags are from there.
    pub advice: Option<String>,
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

/// One rehearsal of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// What is assumed otherwise; none as expected.
    what: Option<String>,
    settings: Settings,
    time: StepTime,
}

impl Variant {
    /// Rehearses it.
    #[must_use]
    pub fn play(&self, requests: &[Request]) -> Outcome {
        rehearse(&self.settings, requests, &self.time, |_, _, _| {})
    }
}

/// What an answer rehearses: as expected, with slower and faster steps, and with the pool at its lower bound. None depends on
/// another.
#[must_use]
pub fn variants(planned: &Planned, time: &StepTime, source: PaceSource) -> Vec<Variant> {
    let s = &planned.settings;
    let of = |what: Option<String>, settings: &Settings, time: StepTime| Variant {
        what,
        settings: settings.clone(),
        time,
    };
    let doubt = source.doubt();
    let mut all = vec![
        of(None, s, *time),
        of(Some(format!("steps take {} as long", share(1.0 / doubt))), s, time.times(1.0 / doubt)),
        of(Some(format!("steps take {} as long", times(doubt))), s, time.times(doubt)),
    ];
    if planned.blocks.0 < s.blocks {
        let low = Settings { blocks: planned.blocks.0, ..s.clone() };
        all.push(of(Some("the pool is at its lower bound".into()), &low, *time));
    }
    all
}

/// The answer from what each of the [`variants`] came to, in their order.
#[must_use]
pub fn answer(planned: &Planned, flags: &[String], played: Vec<(Variant, Outcome)>) -> Option<Rehearsed> {
    let mut played = played.into_iter();
    let (_, outcome) = played.next()?;
    let assumed: Vec<Assumed> = played.map(|(v, o)| Assumed::of(v.what.unwrap_or_default(), &o)).collect();
    let wrong = wrong_by(&outcome);
    let (good, bad) =
        (assumed.iter().any(|a| a.unsafe_by.is_none()), assumed.iter().any(|a| a.unsafe_by.is_some()));
    let holds = match wrong {
        None if bad => Holds::Uncertain,
        None => Holds::Yes,
        Some(_) if good => Holds::Uncertain,
        Some(_) => Holds::No,
    };
    Some(Rehearsed {
        flags: flags.to_vec(),
        advice: None,
        holds,
        unsafe_by: wrong,
        settings: planned.settings.clone(),
        bytes_per_block: planned.bytes_per_block,
        outcome,
        assumed,
        notes: planned.notes.clone(),
    })
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
