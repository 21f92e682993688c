//! Both planes over time: where host RAM and VRAM of the dead container stood, from samples with their labels.
//!
//! Samples are matched by pod, namespace and container; a sample of another pod, and a card that cannot be told to be
//! ours, say nothing.

use std::collections::{BTreeMap, HashMap};

use super::proof::{Peak, VramShare};
use super::{Cited, Decided, Subject};
use crate::evidence::Bundle;
use crate::evidence::metrics::Sample;
use crate::facts::{Facts, Place};
use crate::knowledge::metrics::Metrics;
use crate::time::Stamp;
use crate::units::{Bytes, MIB};

/// A peak this long before the end belongs to another load.
const WINDOW_MS: i64 = 15 * 60 * 1000;
/// A sample may be stamped after the end by so much: scrapes and kubelet have clocks of their own.
const SKEW_MS: i64 = 30_000;
/// Two samples this near show one moment; scrapes of DCGM and cAdvisor lie 10 to 60 s apart.
const SAME_MOMENT_MS: i64 = 60_000;
/// Cards of one pod, or MIG instances; a node has at most 16 cards of 7.
const MAX_CARDS: usize = 128;

/// A sample and what it is a share of.
pub(super) struct Point<'a> {
    pub(super) sample: &'a Sample,
    pub(super) share: f64,
    pub(super) limit: Bytes,
}

impl Point<'_> {
    pub(super) fn peak(&self) -> Peak {
        Peak { used: Bytes::from_f64(self.sample.value), limit: self.limit, at: self.sample.stamp }
    }

    pub(super) fn place(&self) -> Place {
        place(self.sample)
    }
}

pub(super) fn place(s: &Sample) -> Place {
    Place { file: s.file.clone(), line: Some(s.line) }
}

/// The sample names the subject's pod; where no pod is known, all samples of this kind must be of one.
pub(super) fn of_pod(s: &Sample, subject: &Subject, only: Option<&str>) -> bool {
    let same = |label: &str, own: Option<&str>| match (s.about(label), own.filter(|o| !o.is_empty())) {
        (Some(said), Some(own)) => said == own,
        _ => true,
    };
    s.about("pod").is_some_and(|p| Some(p) == subject.pod.as_deref().or(only))
        && same("namespace", subject.namespace.as_deref())
}

/// The one pod that these samples are of.
pub(super) fn only_pod<'a>(bundle: &'a Bundle, name: &str) -> Option<&'a str> {
    let mut pods = bundle.metrics.iter().filter(|s| s.name == name).filter_map(|s| s.about("pod"));
    let first = pods.next()?;
    pods.all(|p| p == first).then_some(first)
}

pub(super) fn of_container(s: &Sample, subject: &Subject) -> bool {
    // Rows without a container are sums of the pod; "POD" is its sandbox.
    s.about("container")
        .is_some_and(|c| c != "POD" && subject.container.as_deref().is_none_or(|own| own == c))
}

/// Within the time before the death, where both are told.
fn in_time(s: &Sample, subject: &Subject) -> bool {
    let died = subject.death.as_ref().and_then(|d| d.finished);
    s.stamp.zip(died).and_then(|(s, d)| s.ms_until(d)).is_none_or(|ms| (-SKEW_MS..=WINDOW_MS).contains(&ms))
}

/// The highest sample of a memory metric of the dead container, against its limit.
pub(super) fn peak<'a>(
    bundle: &'a Bundle,
    subject: &Subject,
    facts: &Facts,
    name: &str,
) -> Option<Point<'a>> {
    let only = only_pod(bundle, name);
    let mine = |s: &&Sample| of_pod(s, subject, only) && of_container(s, subject) && s.value.is_finite();
    let samples =
        bundle.metrics.iter().filter(|s| s.name == name).filter(mine).filter(|s| in_time(s, subject));
    let mut best: Option<&Sample> = None;
    for s in samples {
        if best.is_none_or(|b| s.value > b.value) {
            best = Some(s);
        }
    }
    let sample = best?;
    let limit = bundle.metrics.iter().filter(mine).find(|s| {
        let same = s.about("container") == sample.about("container");
        same && s.value > 0.0
            && (s.name == "container_spec_memory_limit_bytes"
                || s.name == "kube_pod_container_resource_limits" && s.label("resource") == Some("memory"))
    });
    let limit = limit.map(|s| Bytes::from_f64(s.value)).or(super::causes::memory_limit(facts, subject))?;
    let share = Bytes::from_f64(sample.value).share_of(limit);
    (limit.0 > 0).then_some(Point { sample, share, limit })
}

/// VRAM in use, in MiB.
const USED: &str = "DCGM_FI_DEV_FB_USED";
const FREE: &str = "DCGM_FI_DEV_FB_FREE";
const RESERVED: &str = "DCGM_FI_DEV_FB_RESERVED";
const TOTAL: &str = "DCGM_FI_DEV_FB_TOTAL";

/// A card's VRAM at a moment.
pub(super) struct Vram<'a> {
    pub(super) gpu: String,
    pub(super) sample: &'a Sample,
    pub(super) used: Bytes,
    pub(super) total: Bytes,
}

impl Vram<'_> {
    pub(super) fn share(&self) -> f64 {
        self.used.share_of(self.total)
    }

    pub(super) fn proof(&self) -> VramShare {
        VramShare { gpu: self.gpu.clone(), used: self.used, total: self.total, at: self.sample.stamp }
    }
}

/// VRAM of the subject's cards at a moment, or the fullest before the death.
pub(super) fn vram<'a>(bundle: &'a Bundle, subject: &Subject, moment: Option<Stamp>) -> Vec<Vram<'a>> {
    let only = only_pod(bundle, USED);
    let all = || bundle.metrics.iter().filter(|s| s.name == USED && s.value.is_finite());
    let labelled = all().any(|s| s.about("pod").is_some());
    let mut cards: BTreeMap<(String, String), &Sample> = BTreeMap::new();
    for s in all().filter(|s| !labelled || of_pod(s, subject, only)).filter(|s| in_time(s, subject)) {
        let gap = |s: &Sample| s.stamp.zip(moment).and_then(|(a, b)| a.ms_until(b)).map(i64::abs);
        if moment.is_some() && s.stamp.is_some() && gap(s).is_none_or(|g| g > SAME_MOMENT_MS) {
            continue;
        }
        let better = |old: &&Sample| match (gap(s), gap(old)) {
            (Some(new), Some(old)) => new < old,
            _ => s.value > old.value,
        };
        let known = cards.get(&key(s));
        if known.is_none() && cards.len() >= MAX_CARDS {
            continue;
        }
        if known.is_none_or(better) {
            cards.insert(key(s), s);
        }
    }
    // Without pod labels only a single card can be ours.
    if !labelled && cards.len() > 1 {
        return Vec::new();
    }
    let beside = Beside::of(bundle);
    cards.into_values().filter_map(|s| beside.card(s)).collect()
}

/// VRAM of the subject's cards in every sample of these times.
pub(super) fn vram_between<'a>(
    bundle: &'a Bundle,
    subject: &Subject,
    within: impl Fn(Option<Stamp>) -> bool,
) -> Vec<Vram<'a>> {
    let only = only_pod(bundle, USED);
    let all = || bundle.metrics.iter().filter(|s| s.name == USED && s.value.is_finite());
    let labelled = all().any(|s| s.about("pod").is_some());
    let mine = all().filter(|s| !labelled || of_pod(s, subject, only)).filter(|s| within(s.stamp));
    let beside = Beside::of(bundle);
    let out: Vec<Vram<'_>> = mine.filter_map(|s| beside.card(s)).collect();
    // Without pod labels only a single card can be ours.
    let several = out.first().is_some_and(|f| out.iter().any(|v| v.gpu != f.gpu));
    if !labelled && several { Vec::new() } else { out }
}

/// A card and its MIG instance.
type Card = (String, String);

/// Which of them a sample is of.
fn key(s: &Sample) -> Card {
    let card = s.label("UUID").or_else(|| s.label("uuid")).or_else(|| s.label("gpu")).unwrap_or_default();
    (card.to_owned(), s.label("GPU_I_ID").unwrap_or_default().to_owned())
}

/// The figures that stand beside a card's use at each moment, by name: a series of a day has thousands.
struct Beside<'a>(HashMap<(&'a str, Card, Option<Stamp>), f64>);

impl<'a> Beside<'a> {
    fn of(bundle: &'a Bundle) -> Self {
        let told = |s: &&Sample| [TOTAL, FREE, RESERVED].contains(&s.name.as_str());
        let mut out = HashMap::new();
        for s in bundle.metrics.iter().filter(told).filter(|s| s.value.is_finite() && s.value >= 0.0) {
            out.entry((s.name.as_str(), key(s), s.stamp)).or_insert(s.value);
        }
        Self(out)
    }

    /// The sample with the card's total.
    fn card(&self, s: &'a Sample) -> Option<Vram<'a>> {
        let beside = |name: &'static str| self.0.get(&(name, key(s), s.stamp)).copied();
        // The total is not exported by default; without what is reserved the sum is short by less than 1 %.
        let total =
            beside(TOTAL).or_else(|| Some(s.value + beside(FREE)? + beside(RESERVED).unwrap_or(0.0)))?;
        let (card, instance) = key(s);
        let name = s.label("gpu").map_or(card, str::to_owned);
        let gpu = if instance.is_empty() { name } else { format!("{name}, MIG instance {instance}") };
        let mib = |v: f64| Bytes::from_f64(v * MIB as f64);
        Some(Vram { gpu, sample: s, used: mib(s.value), total: mib(total) }).filter(|v| v.total.0 > 0)
    }
}

/// The samples of an engine's metrics that are the subject's.
pub(super) fn of_engine<'a, 's>(
    bundle: &'a Bundle,
    subject: &'s Subject,
    names: Vec<&'s str>,
) -> impl Iterator<Item = &'a Sample> + use<'a, 's> {
    let only: Vec<Option<&str>> = names.iter().map(|name| only_pod(bundle, name)).collect();
    bundle.metrics.iter().filter(move |s| {
        let only = names.iter().position(|n| *n == s.name).and_then(|i| only.get(i));
        only.is_some_and(|o| of_pod(s, subject, *o))
    })
}

/// How full the KV cache was at that moment.
pub(super) fn kv<'a>(
    bundle: &'a Bundle,
    facts: &Facts,
    subject: &Subject,
    moment: Option<Stamp>,
) -> Option<&'a Sample> {
    let told = facts.engine.all.iter().filter_map(|d| d.metrics.as_ref());
    let gap = |s: &Sample| s.stamp.zip(moment).and_then(|(a, b)| a.ms_until(b)).map(i64::abs);
    of_engine(bundle, subject, told.flat_map(Metrics::kv_use_names).collect())
        .filter(|s| gap(s).is_some_and(|g| g <= SAME_MOMENT_MS))
        .min_by_key(|s| gap(s))
}

pub(super) fn fullest<'v, 'a>(cards: &'v [Vram<'a>]) -> Option<&'v Vram<'a>> {
    cards.iter().max_by(|a, b| a.share().total_cmp(&b.share()))
}

/// Behind the sentence that decides, before those that only repeat it.
pub(super) fn say(decided: &mut Decided, cited: Cited) {
    decided.supports.insert(decided.supports.len().min(1), cited);
}
