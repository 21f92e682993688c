//! What a search did, and what it does next: `dualplane.tune/v1`.
//!
//! The log holds every number that decides. A search that was broken off reads it and goes on where it stopped; a step
//! without a result is run again.

use dualplane_stats::compare;
use serde::{Deserialize, Serialize};

use crate::flow::{Finding, flow};
use crate::lever::Lever;
use crate::numbers::Numbers;
use crate::propose::{Levers, Proposal, Tried, propose};

/// The id of the form.
pub const SCHEMA: &str = "dualplane.tune/v1";

/// Less gain than this is none.
const GAIN: f64 = 0.03;
/// Errors beyond this share are no service.
const ERRORS: f64 = 0.01;
/// What must stay free of host RAM and VRAM.
const FREE: f64 = 0.05;
/// Moves that brought nothing, one after another, until the search stops.
const IN_VAIN: usize = 3;

/// A step: the start (without a proposal), or one move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The move; none of the first one, which measures the start.
    pub proposal: Option<Proposal>,
    /// The command line that was measured.
    pub command: Vec<String>,
    /// What was measured; none where it was broken off, or it did not start.
    pub numbers: Option<Numbers>,
    /// What followed; none where it was broken off.
    pub decision: Option<Decision>,
    /// Why, in words.
    pub why: Option<String>,
}

/// What follows from a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It is better: go on from here.
    Keep,
    /// It is not: go back.
    Revert,
}

/// What a search did so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command line that it began with.
    pub command: Vec<String>,
    /// The workload that is moved; none where the command line is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Steps, the first one measures the start.
    pub steps: Vec<Step>,
    /// Why it stopped; none where it goes on.
    pub stopped: Option<String>,
    /// What the flow says of the best one.
    pub finding: Option<Finding>,
    /// The next move.
    pub proposal: Option<Proposal>,
    /// Further moves, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Proposal>,
}

/// What a search does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Measure this command line, by this move; none for the start.
    Measure(Vec<String>, Option<Box<Proposal>>),
    /// Stop, and why.
    Stop(String),
}

impl Log {
    /// A search that begins with a command line.
    #[must_use]
    pub fn new(command: &[String]) -> Self {
        Self { schema: SCHEMA.to_owned(), command: command.to_vec(), ..Self::default() }
    }

    /// The best step so far: the last that was kept.
    #[must_use]
    pub fn best(&self) -> Option<&Step> {
        self.steps.iter().rev().find(|s| s.decision == Some(Decision::Keep))
    }

    /// Adds a step that begins: where it is broken off, it is run again.
    pub fn begin(&mut self, command: Vec<String>, proposal: Option<Proposal>) {
        if self.steps.last().is_some_and(|s| s.decision.is_none()) {
            self.steps.pop();
        }
        self.steps.push(Step { proposal, command, numbers: None, decision: None, why: None });
    }

    /// Adds what a step measured; none where it did not serve. Decides, and says so.
    pub fn add(
        &mut self,
        command: Vec<String>,
        proposal: Option<Proposal>,
        numbers: Option<Numbers>,
        seed: u64,
    ) {
        // A step that was broken off is run again, and replaced.
        if self.steps.last().is_some_and(|s| s.decision.is_none()) {
            self.steps.pop();
        }
        let best = self.best().and_then(|s| s.numbers.as_ref());
        let (decision, why) = match &numbers {
            Some(n) if makes_room(proposal.as_ref(), best, n) => {
                (Decision::Keep, "as much as before, and room in the KV cache for more at a time".to_owned())
            }
            Some(n) => judge(best, n, seed),
            None => (Decision::Revert, "it did not start, or died before it was measured".to_owned()),
        };
        self.steps.push(Step { proposal, command, numbers, decision: Some(decision), why: Some(why) });
    }
}

/// What comes next; `most` steps beside the first.
#[must_use]
pub fn next(log: &Log, levers: &Levers, most: usize) -> Next {
    if let Some(why) = &log.stopped {
        return Next::Stop(why.clone());
    }
    let broken = log.steps.last().filter(|s| s.decision.is_none());
    if let Some(step) = broken {
        return Next::Measure(step.command.clone(), step.proposal.clone().map(Box::new));
    }
    let Some(first) = log.steps.first() else { return Next::Measure(log.command.clone(), None) };
    let Some(best) = log.best() else {
        let why = first.why.clone().unwrap_or_default();
        return Next::Stop(format!("the start itself does not serve: {why}"));
    };
    if log.steps.len() > most {
        return Next::Stop(format!("{most} steps were made"));
    }
    let in_vain = log.steps.iter().rev().take_while(|s| s.decision == Some(Decision::Revert)).count();
    if in_vain >= IN_VAIN {
        return Next::Stop(format!("no gain: {IN_VAIN} moves one after another brought none"));
    }
    let Some(numbers) = &best.numbers else { return Next::Stop("nothing was measured".to_owned()) };
    let tried: Vec<Tried> = log
        .steps
        .iter()
        .filter_map(|s| s.proposal.as_ref())
        .filter_map(|p| Some(Tried { flag: p.flag.clone()?, to: p.to.clone() }))
        .collect();
    let finding = flow(numbers);
    match propose(numbers, &finding, levers, &best.command, &tried) {
        Some(p) => match p.command.clone() {
            Some(command) => Next::Measure(command, Some(Box::new(p))),
            None => Next::Stop(format!("what is left is nothing on the command line: {}", p.to)),
        },
        None if finding.branch.is_none() => {
            Next::Stop(format!("nothing tells which lever: {}", finding.missing.join("; ")))
        }
        None => Next::Stop("no gain: no further move follows from the numbers".to_owned()),
    }
}

/// A larger KV cache beside a bound on what runs brings nothing by itself, and lets the next move bring something.
fn makes_room(proposal: Option<&Proposal>, best: Option<&Numbers>, now: &Numbers) -> bool {
    let (Some(p), Some(best)) = (proposal, best) else { return false };
    let same = best
        .goodput
        .zip(now.goodput)
        .is_some_and(|(was, is)| is >= was * (1.0 - GAIN) && is <= was * (1.0 + GAIN));
    let emptier = best.kv_share.zip(now.kv_share).is_some_and(|(was, is)| is <= was * 0.7);
    let fine = now.restarts.is_none_or(|r| r == 0)
        && now.error_share.is_none_or(|e| e <= ERRORS)
        && now.host_share.is_none_or(|s| s <= 1.0 - FREE);
    p.lever == Lever::Residency && same && emptier && fine && now.waiting_peak.is_some_and(|w| w >= 1.0)
}

/// What one wave of requests more or less makes of the goodput, where requests end together.
fn wave(n: &Numbers) -> Option<f64> {
    Some(n.running? / n.seconds.filter(|s| *s > 0.0)?)
}

/// Whether a step is better than the best so far. The seed is for drawing windows again.
#[must_use]
pub fn judge(best: Option<&Numbers>, now: &Numbers, seed: u64) -> (Decision, String) {
    let revert = |why: String| (Decision::Revert, why);
    if now.restarts.is_some_and(|r| r > 0) {
        return revert("it died under the load".to_owned());
    }
    if let Some(errors) = now.error_share.filter(|e| *e > ERRORS) {
        return revert(format!("{:.1} % of requests fail", errors * 100.0));
    }
    for (plane, share) in [("host RAM", now.host_share), ("VRAM", now.vram_share)] {
        if let Some(share) = share.filter(|s| *s > 1.0 - FREE) {
            let before = best.and_then(|b| if plane == "VRAM" { b.vram_share } else { b.host_share });
            // A server that reserved its share at start stood there before, and no move made it worse.
            if before.is_none_or(|b| share > b + 0.005) && best.is_some() {
                return revert(format!("{plane} reaches {:.0} % of its limit", share * 100.0));
            }
        }
    }
    let Some(goodput) = now.goodput else { return revert("no goodput was measured".to_owned()) };
    let Some(before) = best.and_then(|b| b.goodput) else {
        return (Decision::Keep, format!("the start: {goodput:.2} good requests a second"));
    };
    if before <= 0.0 {
        let better = goodput > 0.0;
        let why = format!("{goodput:.2} good requests a second instead of none");
        return if better { (Decision::Keep, why) } else { revert("still no good request".to_owned()) };
    }
    let gain = goodput / before - 1.0;
    let noise = best.and_then(|b| compare::windows(&b.windows, &now.windows, 0.95, seed));
    let sure = match noise {
        Some(d) => d.low + gain - d.relative > 0.0,
        // Too few windows as long as a request: one wave of requests more or less is chance.
        None => best.zip(wave(now)).is_none_or(|(b, w)| goodput - w > before + wave(b).unwrap_or_default()),
    };
    let said = format!("{goodput:.2} good requests a second instead of {before:.2}: {:+.1} %", gain * 100.0);
    match (gain > GAIN, sure) {
        (true, true) => (Decision::Keep, said),
        (true, false) => revert(format!("{said}, which may be chance")),
        (false, _) => revert(said),
    }
}
