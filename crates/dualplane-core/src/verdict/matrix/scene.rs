//! The typed facts that the rows look at, each with its place.

use crate::evidence::metrics::last_before;
use crate::evidence::{Autoscaler, Event};
use crate::facts::{Hit, Place, quantised};
use crate::knowledge::metrics::Metrics;
use crate::units::Bytes;
use crate::verdict::case::Case;
use crate::verdict::{Class, Decided, Phase, Trigger, gpus};

/// Facts of the launch and of its failure; `None` where the evidence does not tell.
#[derive(Debug, Clone, Default)]
pub(super) struct Scene {
    pub(super) class: Option<Class>,
    pub(super) phase: Stage,
    pub(super) line: Option<Trigger>,
    pub(super) weights: Option<(Bytes, Place)>,
    /// Capacity of the card.
    pub(super) total: Option<Bytes>,
    pub(super) shards: Option<(u64, u64, Place)>,
    /// Settings are known, so that one that is not among them was not given.
    pub(super) settings: bool,
    pub(super) quantised: Option<(String, String)>,
    pub(super) sequences: Option<u64>,
    pub(super) length: Option<u64>,
    pub(super) pool: Option<u64>,
    pub(super) kv_use: Option<(f64, Place)>,
    pub(super) preallocates: bool,
    pub(super) share: Option<f64>,
    pub(super) requested: Option<Bytes>,
    pub(super) own: Option<Bytes>,
    pub(super) others: Option<Bytes>,
    pub(super) ranks: Option<u64>,
    pub(super) gpus: Option<u64>,
    /// Use of the fullest and the emptiest card.
    pub(super) cards: Option<(f64, f64, Place)>,
    pub(super) scaler: Option<(String, String)>,
    pub(super) probe: Option<(String, Place)>,
}

/// What the server was doing, as far as the rows ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// It loaded its weights.
    Loading,
    /// It sized its cache or captured graphs: the weights were in place.
    Sizing,
    /// It served.
    Serving,
    #[default]
    Unknown,
}

impl Scene {
    pub(super) fn of(case: &Case<'_>, decided: &Decided) -> Self {
        let engine = &case.facts.engine;
        let head = engine.head();
        let flags = head.or_else(|| engine.all.usual()).map(|d| &d.flags);
        let number = |names: &dyn Fn(&dualplane_engines::Flags) -> &Vec<String>| {
            let v = engine.lever_number(names(flags?))?;
            (v.is_finite() && v > 0.0).then_some(v)
        };
        let whole =
            |names: &dyn Fn(&dualplane_engines::Flags) -> &Vec<String>| number(names).map(|v| v as u64);
        let oom = decided.trigger.as_ref().and_then(Trigger::vram).unwrap_or_default();
        let last = |f: &dyn Fn(&Hit) -> Option<Bytes>| {
            case.facts.hits.iter().rev().find_map(|h| Some((f(h)?, h.place.clone())))
        };
        let weights = head.and_then(|d| {
            let of = |h: &Hit| {
                d.printed.weights.iter().find_map(|n| h.memory(&n.group).filter(|_| n.is_of(&h.id)))
            };
            last(&of)
        });
        let shards = case.facts.hits.iter().rev().find_map(|h| {
            let of = |group| h.number(group).filter(|n| *n >= 0.0).map(|n| n as u64);
            Some((of("shards_done")?, of("shards")?, h.place.clone()))
        });
        let pool = case.facts.hits.iter().rev().find_map(|h| h.number("kv_tokens")).filter(|t| *t >= 1.0);
        let printed = last(&|h| h.memory("total").filter(|t| t.0 > 1 << 30)).map(|(t, _)| t);
        let quantised = quantised::by_setting(engine)
            .map(|s| {
                s.split_once(' ').map_or((s.clone(), String::new()), |(a, b)| (a.to_owned(), b.to_owned()))
            })
            .or_else(|| quantised::by_name(engine, None).map(|n| ("model".to_owned(), n)));
        Self {
            class: Some(decided.class),
            phase: match decided.phase {
                Phase::Load => Stage::Loading,
                Phase::Profile => Stage::Sizing,
                Phase::Traffic | Phase::Idle => Stage::Serving,
                Phase::Unknown => Stage::Unknown,
            },
            line: decided.trigger.clone(),
            weights,
            total: oom.total.or(printed),
            shards,
            settings: !engine.flags.is_empty() || !engine.printed.is_empty(),
            quantised,
            sequences: whole(&|f| &f.batch),
            length: whole(&|f| &f.length),
            pool: pool.map(|t| t as u64),
            kv_use: kv_use(case),
            preallocates: head.is_some_and(|d| d.preallocates),
            share: number(&|f| &f.share).filter(|s| *s <= 1.0),
            requested: oom.requested,
            own: oom.own(),
            others: oom.others(),
            ranks: engine.ranks_are_given().then(|| split_over(case)),
            gpus: gpus_of(case),
            cards: cards(case),
            scaler: scaler(case),
            probe: probe(case),
        }
    }

    /// The share of the card that the weights take.
    pub(super) fn weights_share(&self) -> Option<f64> {
        self.weights.as_ref().zip(self.total).map(|((w, _), total)| w.share_of(total))
    }
}

/// Ranks of tensor and of pipeline parallelism, and copies.
fn split_over(case: &Case<'_>) -> u64 {
    let e = &case.facts.engine;
    let of = |names: &[&str]| e.number(names).filter(|n| *n >= 1.0).unwrap_or(1.0);
    let copies = of(&["data-parallel-size", "dp-size", "dp", "replicas"]);
    (e.ranks() * of(&["pipeline-parallel-size", "pp-size", "pp"]) * copies) as u64
}

/// Whole cards of the container that is judged.
fn gpus_of(case: &Case<'_>) -> Option<u64> {
    let container = case.pod()?.containers.iter().find(|c| case.subject.is_container(c))?;
    let whole = container.devices.iter().filter(|(name, _)| name.ends_with("/gpu")).map(|(_, n)| n).sum();
    Some(whole).filter(|n| *n > 0)
}

fn kv_use(case: &Case<'_>) -> Option<(f64, Place)> {
    let told = case.facts.engine.all.iter().filter_map(|d| d.metrics.as_ref());
    let names: Vec<&str> = told.flat_map(Metrics::kv_use_names).collect();
    let named =
        case.bundle.metrics.iter().filter(|s| names.contains(&s.name.as_str()) && s.value.is_finite());
    let s = last_before(named, case.death().and_then(|d| d.finished))?;
    Some((s.value, Place { file: s.file.clone(), line: Some(s.line) }))
}

/// Cards of one printout, where it shows as many as the container has.
fn cards(case: &Case<'_>) -> Option<(f64, f64, Place)> {
    let all = gpus::cards(case.bundle);
    if all.len() < 2 || gpus_of(case) != Some(all.len() as u64) {
        return None;
    }
    let shares: Vec<f64> = all.iter().filter_map(|(_, g)| Some(g.used?.share_of(g.total?))).collect();
    let (s, g) = all.first()?;
    let most = shares.iter().copied().reduce(f64::max)?;
    let least = shares.iter().copied().reduce(f64::min)?;
    (shares.len() == all.len()).then(|| (most, least, gpus::place(&s.file, g.line)))
}

/// An autoscaler of the pod's workload that follows the host alone.
fn scaler(case: &Case<'_>) -> Option<(String, String)> {
    let (_, owner) = case.pod()?.owner.as_ref()?;
    // A ReplicaSet's name is its Deployment's with a hash behind it.
    let ours = |a: &&Autoscaler| {
        let rest = owner.strip_prefix(a.target.1.as_str());
        let same =
            rest.is_some_and(|r| r.is_empty() || r.strip_prefix('-').is_some_and(|h| !h.contains('-')));
        let here = a.namespace.as_deref().zip(case.subject.namespace.as_deref()).is_none_or(|(a, b)| a == b);
        same && here && a.follows_the_host_alone()
    };
    case.bundle.autoscalers.iter().find(ours).map(|a| (a.name.clone(), a.metrics.clone()))
}

/// A probe that killed the container.
fn probe(case: &Case<'_>) -> Option<(String, Place)> {
    let failed = ["failed liveness probe", "failed startup probe"];
    let of = |e: &&Event| {
        e.reason == "Killing"
            && failed.iter().any(|w| e.message.contains(w))
            && case.subject.is_of(e, case.bundle)
    };
    let e = case.bundle.events.iter().find(of)?;
    Some((e.message.clone(), Place { file: e.file.clone(), line: e.line }))
}
