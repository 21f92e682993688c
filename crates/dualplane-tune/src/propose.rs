//! One move: which lever, from where to where, what it should bring, and what it risks.

use dualplane_engines::{Descriptor, PoolUnit};
use serde::{Deserialize, Serialize};

use crate::flow::{Branch, Finding};
use crate::lever::{Lever, advice};
use crate::numbers::Numbers;
use crate::settings;

/// No engine's default and no measured load says more.
const MOST_SEQUENCES: u64 = 4096;
/// What a KV cache may be filled to by design: the rest is for requests that are longer than the mean.
const KV_FILL: f64 = 0.9;
/// A pool grows by no more than this at once: what it takes is seen before more is asked for.
const POOL_STEP: f64 = 4.0;
/// More moves are not named at once.
const MOST_MOVES: usize = 5;
/// Beyond this share of host RAM, nothing is proposed that takes more of it.
const HOST_ROOM: f64 = 0.85;

/// An engine's settings that can be moved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Levers {
    /// Id of the engine.
    pub engine: String,
    /// Requests at a time.
    pub batch: Vec<String>,
    /// Tokens of a step.
    pub step: Vec<String>,
    /// Sizes of the KV cache that count blocks or tokens.
    pub pool: Vec<Vec<String>>,
    /// Makes the KV cache's entries smaller.
    pub kv_type: Option<String>,
}

impl Levers {
    /// Those of an engine.
    #[must_use]
    pub fn of(engine: &Descriptor) -> Self {
        let counts = |u: PoolUnit| matches!(u, PoolUnit::Blocks | PoolUnit::Tokens);
        Self {
            engine: engine.id.clone(),
            batch: engine.flags.batch.clone(),
            step: engine.step.as_ref().map(|s| s.flags.clone()).unwrap_or_default(),
            pool: engine.flags.pool.iter().filter(|p| counts(p.unit)).map(|p| p.names.clone()).collect(),
            kv_type: engine.flags.kv_type.clone(),
        }
    }
}

/// A move that is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// The setting; empty of a move that is nothing on the command line.
    pub flag: String,
    /// Its value.
    pub to: String,
}

/// A move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The lever.
    pub lever: Lever,
    /// The setting; none where it is nothing on the command line.
    pub flag: Option<String>,
    /// Its value now; none where the engine's default holds.
    pub from: Option<String>,
    /// Its next value, or what to do.
    pub to: String,
    /// Why, with the numbers.
    pub why: String,
    /// What it should bring.
    pub predicted: String,
    /// What it risks in host RAM.
    pub risks_host: String,
    /// What it risks in VRAM.
    pub risks_vram: String,
    /// The command line with it; none where it is nothing on the command line.
    pub command: Option<Vec<String>>,
    /// Whose setting it is, for `apply`: the engine's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// All names of the setting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What plan and rehearsal say of it, where they know the model and the card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub computed: Vec<String>,
}

/// Names one move; none where the branch has no further one. What was tried is not proposed again.
#[must_use]
pub fn propose(
    n: &Numbers,
    finding: &Finding,
    levers: &Levers,
    command: &[String],
    tried: &[Tried],
) -> Option<Proposal> {
    let branch = finding.branch?;
    let flag = |p: &Proposal| p.flag.clone().unwrap_or_default();
    let new = |p: &Proposal| !tried.iter().any(|t| t.flag == flag(p) && t.to == p.to);
    let pool = || larger_pool(n, levers, command);
    let more = || more_at_a_time(n, levers, command);
    let fewer = || fewer_at_a_time(n, levers, command);
    let step = || larger_step(n, levers, command);
    let moves: Vec<Option<Proposal>> = match branch {
        Branch::SmallerEnvelope => vec![pool(), fewer(), precision(n, levers, command)],
        // Where clients wait for their turn, what waits may run instead; where they wait for tokens, less may run.
        Branch::Admission => vec![pool(), more(), step(), fewer()],
        Branch::Batching | Branch::HeadroomAndCost => vec![pool(), more(), step()],
        Branch::HostSide => vec![step()],
    };
    let engine = Some(levers.engine.clone()).filter(|e| !e.is_empty());
    let found = moves.into_iter().flatten().find(new);
    let found = found.map(|p| Proposal { engine: engine.filter(|_| p.flag.is_some()), ..p });
    // A search that moved a flag ends with what its numbers say, not with words; an idle device is the host's matter always.
    let words = branch == Branch::HostSide || tried.iter().all(|t| t.flag.is_empty());
    let said = advice(branch, &levers.engine).map(|(lever, a)| words_of(lever, &a.to, &a.why, &a.predicted));
    found.or_else(|| said.filter(|_| words).find(|p| new(p)))
}

/// All moves that follow from the numbers, the first one first.
#[must_use]
pub fn proposals(n: &Numbers, finding: &Finding, levers: &Levers, command: &[String]) -> Vec<Proposal> {
    let mut tried = Vec::new();
    let mut all: Vec<Proposal> = Vec::new();
    while let Some(p) = propose(n, finding, levers, command, &tried).filter(|_| all.len() < MOST_MOVES) {
        // Words come only while no flag was tried, so a flag that was named is left out by its own value.
        tried.push(Tried { flag: p.flag.clone().unwrap_or_default(), to: p.to.clone() });
        all.push(p);
    }
    all
}

fn with(
    lever: Lever,
    names: &[String],
    command: &[String],
    to: u64,
    why: String,
    predicted: String,
) -> Option<Proposal> {
    let from = settings::value(command, names).map(str::to_owned);
    let to = to.to_string();
    if from.as_deref() == Some(to.as_str()) {
        return None;
    }
    Some(Proposal {
        lever,
        flag: Some(names.iter().find(|n| n.starts_with('-'))?.clone()),
        from,
        command: Some(settings::set(command, names, &to)?),
        to,
        why,
        predicted,
        risks_host: lever.risks_host().to_owned(),
        risks_vram: lever.risks_vram().to_owned(),
        engine: None,
        names: names.to_vec(),
        computed: Vec::new(),
    })
}

/// As many at a time as came, as far as the KV cache holds them.
fn more_at_a_time(n: &Numbers, levers: &Levers, command: &[String]) -> Option<Proposal> {
    let (running, waiting) = (n.running_peak?, n.waiting_peak?);
    if running < 1.0 || waiting < 1.0 || n.host_share.is_some_and(|s| s > HOST_ROOM) {
        return None;
    }
    let wanted = running + waiting;
    let of_each = n.kv_share.filter(|kv| *kv > 0.0).map(|kv| kv / running);
    let holds = of_each.map_or(2.0 * running, |each| KV_FILL / each);
    let to = (wanted.min(holds).floor() as u64).min(MOST_SEQUENCES);
    let now = settings::value(command, &levers.batch).and_then(|v| v.parse::<u64>().ok());
    if to <= now.unwrap_or(running as u64) {
        return None;
    }
    let kv = of_each.map(|each| format!(", the KV cache at most {:.0} % full", each * to as f64 * 100.0));
    let goodput = n.goodput.map(|g| {
        let most = g * to as f64 / running;
        format!("up to {most:.2} good requests a second instead of {g:.2}, where the device has room for it")
    });
    with(
        Lever::InFlightBatching,
        &levers.batch,
        command,
        to,
        format!("{running:.0} run and {waiting:.0} wait at most: {wanted:.0} want to run"),
        format!(
            "{}{}",
            goodput.unwrap_or_else(|| "more at the same time".to_owned()),
            kv.unwrap_or_default()
        ),
    )
}

/// No more at a time than the KV cache holds.
fn fewer_at_a_time(n: &Numbers, levers: &Levers, command: &[String]) -> Option<Proposal> {
    let running = n.running_peak.filter(|r| *r >= 2.0)?;
    let mean = n.running.unwrap_or(running);
    let now = settings::value(command, &levers.batch).and_then(|v| v.parse::<u64>().ok());
    let to = (mean.min(running) * 0.75).floor().max(1.0) as u64;
    if now.is_some_and(|now| to >= now) {
        return None;
    }
    with(
        Lever::InFlightBatching,
        &levers.batch,
        command,
        to,
        format!("{mean:.0} run on average and {running:.0} at most, and memory or p99 does not hold them"),
        "fewer requests lose their place and begin anew; others wait longer".to_owned(),
    )
}

/// A pool that holds what came, where a setting keeps it smaller.
fn larger_pool(n: &Numbers, levers: &Levers, command: &[String]) -> Option<Proposal> {
    let (names, now) = levers.pool.iter().find_map(|names| {
        Some((names, settings::value(command, names)?.parse::<u64>().ok().filter(|v| *v > 0)?))
    })?;
    if n.host_share.is_some_and(|s| s > HOST_ROOM) || n.kv_share.is_some_and(|kv| kv < 0.8) {
        return None;
    }
    let (running, waiting) = (n.running_peak.unwrap_or(1.0).max(1.0), n.waiting_peak.unwrap_or_default());
    let wanted = running + waiting;
    // What ran when most ran had not all come to its end: where a request's tokens are known, its last counts. It takes whole
    // pages.
    let at_their_end = n.kv_tokens.filter(|t| *t > 0).zip(n.tokens_of_each).map(|(holds, each)| {
        let page = holds.div_ceil(now) as f64;
        wanted * (each / page).ceil() * page / holds as f64
    });
    let factor = at_their_end.unwrap_or_default().max(wanted / running) / KV_FILL;
    let factor = factor.clamp(2.0, POOL_STEP);
    let to = (now as f64 * factor).ceil() as u64;
    let lost = n.preemptions.unwrap_or_default();
    with(
        Lever::Residency,
        names,
        command,
        to,
        format!(
            "a KV cache of {now} was {}full, {lost} requests lost their place and {waiting:.0} waited at most",
            n.kv_share.map(|kv| format!("{:.0} % ", kv * 100.0)).unwrap_or_default()
        ),
        format!(
            "{factor:.1} times as many tokens: what runs keeps its place, and more of what waits may run"
        ),
    )
}

/// A step with more tokens: inputs are computed sooner.
fn larger_step(n: &Numbers, levers: &Levers, command: &[String]) -> Option<Proposal> {
    let now =
        settings::value(command, &levers.step).and_then(|v| v.parse::<u64>().ok().filter(|v| *v > 0))?;
    if n.host_share.is_some_and(|s| s > HOST_ROOM) {
        return None;
    }
    with(
        Lever::InFlightBatching,
        &levers.step,
        command,
        now.saturating_mul(2),
        format!("a step computes {now} tokens at most"),
        "inputs are computed in fewer steps: a shorter time to first token, longer gaps between tokens"
            .to_owned(),
    )
}

fn words_of(lever: Lever, to: &str, why: &str, predicted: &str) -> Proposal {
    Proposal {
        lever,
        flag: None,
        from: None,
        to: to.to_owned(),
        why: why.to_owned(),
        predicted: predicted.to_owned(),
        risks_host: lever.risks_host().to_owned(),
        risks_vram: lever.risks_vram().to_owned(),
        command: None,
        engine: None,
        names: Vec::new(),
        computed: Vec::new(),
    }
}

fn precision(n: &Numbers, levers: &Levers, command: &[String]) -> Option<Proposal> {
    let set = levers.kv_type.as_ref()?;
    let flag = set.split([' ', '=']).next()?;
    if command.iter().any(|w| w.starts_with(flag)) || n.kv_share.is_none_or(|kv| kv < 0.95) {
        return None;
    }
    Some(words_of(
        Lever::Precision,
        set,
        "the KV cache is full, and nothing on the command line keeps it small",
        "twice as many tokens in the same memory, where the card and the model allow it; check the quality of answers",
    ))
}
