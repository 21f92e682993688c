//! VRAM of the cards that a living server uses, and its KV cache.
//!
//! An engine that reserves its share of the card at start (vLLM's `--gpu-memory-utilization`) always stands at 80 to 95 %:
//! there its KV cache tells how much is in use, and only what is left outside of the share can run short.

use super::growth::{self, Point};
use super::living::Living;
use super::thresholds::{KV_FULL, VRAM_HIGH, VRAM_NEAR};
use super::{Level, Reading};
use crate::evidence::gpu_model::{Gpu, GpuSnapshot};
use crate::evidence::metrics::{Sample, last_before};
use crate::evidence::{Bundle, Container, Role};
use crate::facts::{Facts, Place};
use crate::knowledge::metrics::Metrics;
use crate::time::Stamp;
use crate::units::Bytes;
use crate::verdict::series::{Vram, of_pod, only_pod, place, vram_between};
use crate::verdict::{Plane, Subject, gpus};
use dualplane_base::order::Order as _;

pub(super) fn readings(bundle: &Bundle, facts: &Facts, subject: &Subject, living: &[Living]) -> Vec<Reading> {
    // The server's own start: cards belong to no helper.
    let own = living.iter().find(|l| l.name == subject.container).or(living.first());
    let covers = |at: Option<Stamp>| own.is_none_or(|l| l.covers(at));
    let mut out = of_series(bundle, facts, subject, &covers);
    if out.is_empty() {
        out = of_tools(bundle, facts, &covers);
    }
    out.extend(kv_cache(bundle, facts, subject, &covers));
    out
}

/// A card's use, judged by how its engine takes memory.
fn reading(
    gpu: &str,
    used: Bytes,
    total: Bytes,
    facts: &Facts,
    at: (Option<Stamp>, Place),
    points: &[Point],
) -> Reading {
    let share = used.share_of(total);
    let engine = facts.engine.head().filter(|d| d.preallocates);
    let level = match share {
        s if s >= VRAM_HIGH => Level::High,
        s if s >= VRAM_NEAR && engine.is_none() => Level::Near,
        _ => Level::Normal,
    };
    let note = match engine {
        Some(d) if share >= VRAM_NEAR && level == Level::Normal => Some(format!(
            "{} reserves its memory at start; the use of the KV cache tells how full it is",
            d.name
        )),
        Some(d) if level == Level::High => Some(format!(
            "{} reserves its memory at start; {} are left for activations and graphs outside of it",
            d.name,
            total.saturating_sub(used)
        )),
        None if level == Level::Near => Some("a further request or model may not fit".to_owned()),
        _ => None,
    };
    let growth = growth::of(points, total);
    let (stamp, place) = at;
    let reading = Reading {
        plane: Plane::Gpu,
        level,
        what: format!("VRAM of GPU {gpu}"),
        container: None,
        bytes: Some((used, total)),
        share,
        stamp,
        place,
        note,
        growth,
    };
    reading.foreseen()
}

fn of_series(
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
    covers: &dyn Fn(Option<Stamp>) -> bool,
) -> Vec<Reading> {
    let mut by_card: Vec<(String, Vec<Vram<'_>>)> = Vec::new();
    for v in vram_between(bundle, subject, covers) {
        match by_card.iter_mut().find(|(gpu, _)| *gpu == v.gpu) {
            Some((_, all)) => all.push(v),
            None => by_card.push((v.gpu.clone(), vec![v])),
        }
    }
    let of = |(gpu, mut all): (String, Vec<Vram<'_>>)| {
        let since = all.first().and_then(|v| v.sample.stamp);
        all.order_by_key(|v| since.zip(v.sample.stamp).and_then(|(a, b)| a.ms_until(b)));
        let points: Vec<Point> =
            all.iter().filter_map(|v| Some((v.sample.stamp?, v.used, place(v.sample)))).collect();
        let v = all.last()?;
        Some(reading(&gpu, v.used, v.total, facts, (v.sample.stamp, place(v.sample)), &points))
    };
    by_card.into_iter().filter_map(of).collect()
}

/// What `nvidia-smi` and its like print, often again and again.
fn of_tools(bundle: &Bundle, facts: &Facts, covers: &dyn Fn(Option<Stamp>) -> bool) -> Vec<Reading> {
    let mut by_card: Vec<(String, Vec<(&GpuSnapshot, &Gpu)>)> = Vec::new();
    for (s, g) in printouts(bundle).flat_map(|s| s.gpus.iter().map(move |g| (s, g))) {
        if g.mig_enabled || g.total.is_none_or(|t| t.0 == 0) || used(g).is_none() || !covers(when(s, g)) {
            continue;
        }
        let name = g.index.map_or_else(|| g.uuid.clone().unwrap_or_default(), |i| i.to_string());
        match by_card.iter_mut().find(|(n, _)| *n == name) {
            Some((_, all)) => all.push((s, g)),
            None => by_card.push((name, vec![(s, g)])),
        }
    }
    // A node's printout shows the cards of all its pods.
    let own = gpus::own_card(bundle).map(|(_, g)| g.index);
    let asked: u64 = bundle.pods.iter().flat_map(|p| &p.containers).map(asked).sum();
    let all_ours = bundle.pods.is_empty() || asked == by_card.len() as u64;
    by_card.retain(|(_, all)| all_ours || own.is_some_and(|i| all.iter().any(|(_, g)| g.index == i)));
    let mut out: Vec<Reading> = by_card
        .into_iter()
        .filter_map(|(name, all)| {
            let points: Vec<Point> = all
                .iter()
                .filter_map(|(s, g)| Some((when(s, g)?, used(g)?, gpus::place(&s.file, g.line))))
                .collect();
            let (s, g) = *all.last()?;
            let at = (when(s, g), gpus::place(&s.file, g.line));
            Some(reading(&name, used(g)?, g.total?, facts, at, &points))
        })
        .collect();
    for (s, m) in printouts(bundle).flat_map(|s| s.mig.iter().map(move |m| (s, m))) {
        if let Some((used, total)) = m.used.zip(m.total.filter(|t| t.0 > 0)).filter(|_| covers(s.stamp)) {
            let id = m.instance.map(|i| format!(" {i}")).unwrap_or_default();
            let gpu = m.gpu.map_or_else(String::new, |g| g.to_string());
            let at = (s.stamp, gpus::place(&s.file, m.line));
            out.push(reading(&format!("{gpu}, MIG instance{id}"), used, total, facts, at, &[]));
        }
    }
    out
}

/// Those that a person took. A container that prints one into its own log does so before it loads.
fn printouts(bundle: &Bundle) -> impl Iterator<Item = &GpuSnapshot> {
    let of_container = |file: &str| {
        bundle.logs.iter().any(|l| l.name == file && matches!(l.role, Role::Previous | Role::Current))
    };
    bundle.gpus.iter().filter(move |s| !of_container(&s.file))
}

fn when(s: &GpuSnapshot, g: &Gpu) -> Option<Stamp> {
    g.stamp.or(s.stamp)
}

fn used(g: &Gpu) -> Option<Bytes> {
    g.used.or_else(|| Some(g.total?.saturating_sub(g.free?)))
}

/// Whole cards that a container asks for.
fn asked(c: &Container) -> u64 {
    c.devices.iter().filter(|(name, _)| name.ends_with("/gpu")).map(|(_, n)| n).sum()
}

/// A full KV cache with requests that wait: VRAM is short, though nothing of it is free or taken.
fn kv_cache(
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
    covers: &dyn Fn(Option<Stamp>) -> bool,
) -> Option<Reading> {
    let told = || facts.engine.all.iter().filter_map(|d| d.metrics.as_ref());
    let latest = |names: Vec<&str>| {
        let only = names.iter().find_map(|n| only_pod(bundle, n));
        let of = |s: &&Sample| {
            names.contains(&s.name.as_str())
                && s.value.is_finite()
                && (s.about("pod").is_none() || of_pod(s, subject, only))
                && covers(s.stamp)
        };
        last_before(bundle.metrics.iter().filter(of), None)
    };
    let use_of = latest(told().flat_map(Metrics::kv_use_names).collect())?;
    let share = use_of.value;
    let waiting = latest(told().flat_map(Metrics::waiting_names).collect()).map_or(0.0, |s| s.value);
    if share < KV_FULL {
        return None;
    }
    let queue = waiting >= 1.0;
    Some(Reading {
        plane: Plane::Gpu,
        level: if queue { Level::High } else { Level::Near },
        what: "KV cache".to_owned(),
        container: None,
        bytes: None,
        share,
        stamp: use_of.stamp,
        place: place(use_of),
        note: Some(if queue {
            format!("{waiting} requests wait for room in it")
        } else {
            "no request waits: a full cache without a queue is a well used card".to_owned()
        }),
        growth: None,
    })
}
