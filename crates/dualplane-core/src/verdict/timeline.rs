//! Both planes on one clock up to the end, for people who look before they read: lines of samples that are the
//! subject's own, and the moments that the verdict speaks of.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;

use super::series::{of_container, of_engine, of_pod, only_pod, vram_between};
use super::{Subject, Verdict};
use crate::evidence::Bundle;
use crate::evidence::metrics::Sample;
use crate::facts::Facts;
use crate::knowledge::metrics::Metrics;
use crate::time::Stamp;

/// So long before its last moment a timeline begins. The agent keeps ten minutes; of a stored day the end is what matters.
const WINDOW_MS: i64 = 60 * 60 * 1000;
/// What is stamped later is of the next life, or of clocks that disagree.
const AFTER_MS: i64 = 30_000;
/// Points of a line: more than a screen is wide are not seen.
const MAX_POINTS: usize = 900;
/// Cards that are drawn, the fullest first.
const MAX_CARDS: usize = 16;

/// What a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Host RAM that the kernel does not reclaim at once, bytes.
    WorkingSet,
    /// Anonymous host RAM, bytes.
    Anonymous,
    /// Shared, pinned and tmpfs memory, bytes.
    Shared,
    /// The container's limit of host RAM, bytes.
    HostLimit,
    /// VRAM in use on a card, bytes.
    Vram,
    /// The card's VRAM, bytes.
    VramTotal,
    /// Share of the KV cache in use, 0 to 1.
    KvCache,
    /// Requests that run.
    Running,
    /// Requests that wait.
    Waiting,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is of.
    pub measure: Measure,
    /// The card, for VRAM.
    pub card: Option<String>,
    /// Milliseconds since 1970 and the value there, in order; of values that are thinned out the highest stay.
    pub points: Vec<(i64, f64)>,
}

/// A moment that the verdict speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The first error.
    FirstError,
    /// The container's end.
    End,
}

/// Lines and moments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// By measure and card.
    pub lines: Vec<Line>,
    /// Moments within the time of the lines.
    pub moments: Vec<(i64, Moment)>,
}

impl Timeline {
    /// First and last moment of all lines; none where there is no line.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        let times = || self.lines.iter().flat_map(|l| &l.points).map(|(at, _)| *at);
        let moments = || self.moments.iter().map(|(at, _)| *at);
        Some((times().min()?, times().chain(moments()).max()?))
    }
}

/// The lines of the container that was judged.
#[must_use]
pub fn timeline(bundle: &Bundle, facts: &Facts, verdict: &Verdict) -> Timeline {
    let subject = &verdict.subject;
    let mut lines = host(bundle, subject);
    lines.extend(cards(bundle, subject));
    lines.extend(engine(bundle, facts, subject));
    lines.retain(|l| !l.points.is_empty());
    let Some(last) = lines.iter().filter_map(|l| l.points.last()).map(|(at, _)| *at).max() else {
        return Timeline::default();
    };
    let end = subject.death.as_ref().and_then(|d| d.finished).and_then(wall);
    // Behind the end the lines are of the next life.
    let until = end.map_or(last, |end| last.min(end.saturating_add(AFTER_MS)));
    let from = until.saturating_sub(WINDOW_MS);
    for line in &mut lines {
        line.points.retain(|(at, _)| (from..=until).contains(at));
        line.points = thinned(std::mem::take(&mut line.points));
    }
    lines.retain(|l| !l.points.is_empty());
    // A limit that no series tells is the one of the pod's object; it held all the time.
    let limited = lines.iter().any(|l| l.measure == Measure::HostLimit);
    let of_host = lines.iter().find(|l| matches!(l.measure, Measure::WorkingSet | Measure::Anonymous));
    let ends = of_host.and_then(|l| Some((l.points.first()?.0, l.points.last()?.0)));
    let limit = super::causes::memory_limit(facts, subject).filter(|l| !limited && l.0 > 0);
    if let Some((limit, (first, last))) = limit.zip(ends) {
        let points = vec![(first, limit.0 as f64), (last, limit.0 as f64)];
        lines.push(Line { measure: Measure::HostLimit, card: None, points });
    }
    let near = Stamp::Wall { ms: end.unwrap_or(until), zoned: true, year: true };
    let first = verdict.trigger.as_ref().and_then(|t| t.stamp);
    let first = first.map(|s| s.with_year_near(Some(near)).without_zone(near)).and_then(wall);
    let moments = [(first, Moment::FirstError), (end, Moment::End)];
    let within = |at: &i64| (from..=until.saturating_add(AFTER_MS)).contains(at);
    let moments = moments.into_iter().filter_map(|(at, what)| Some((at.filter(within)?, what))).collect();
    Timeline { lines, moments }
}

fn wall(stamp: Stamp) -> Option<i64> {
    match stamp {
        Stamp::Wall { ms, year: true, .. } => Some(ms),
        _ => None,
    }
}

/// Samples by moment; of several at one moment (ranks, instances) what `join` makes of them.
fn points<'a>(samples: impl Iterator<Item = &'a Sample>, join: impl Fn(f64, f64) -> f64) -> Vec<(i64, f64)> {
    let mut at = BTreeMap::new();
    for s in samples.filter(|s| s.value.is_finite()) {
        if let Some(ms) = s.stamp.and_then(wall) {
            at.entry(ms).and_modify(|v| *v = join(*v, s.value)).or_insert(s.value);
        }
    }
    at.into_iter().collect()
}

/// Of each stretch of time the highest value: a spike is what killed it.
fn thinned(points: Vec<(i64, f64)>) -> Vec<(i64, f64)> {
    let each = points.len().div_ceil(MAX_POINTS).max(1);
    let highest = |chunk: &[(i64, f64)]| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    points.chunks(each).filter_map(highest).collect()
}

fn host(bundle: &Bundle, subject: &Subject) -> Vec<Line> {
    const NAMES: [(&str, Measure); 4] = [
        ("container_memory_working_set_bytes", Measure::WorkingSet),
        ("container_memory_rss", Measure::Anonymous),
        ("dualplane_container_memory_shmem_bytes", Measure::Shared),
        ("container_spec_memory_limit_bytes", Measure::HostLimit),
    ];
    let line = |(name, measure): (&str, Measure)| {
        let only = only_pod(bundle, name);
        let mine = |s: &&Sample| {
            let zero_limit = measure == Measure::HostLimit && s.value <= 0.0;
            s.name == name && of_pod(s, subject, only) && of_container(s, subject) && !zero_limit
        };
        // Where the container is not known, several may match: the largest is the one that is near its limit.
        Line { measure, card: None, points: points(bundle.metrics.iter().filter(mine), f64::max) }
    };
    NAMES.into_iter().map(line).collect()
}

fn cards(bundle: &Bundle, subject: &Subject) -> Vec<Line> {
    let mut by_card: BTreeMap<String, [BTreeMap<i64, f64>; 2]> = BTreeMap::new();
    for v in vram_between(bundle, subject, |_| true) {
        let Some(ms) = v.sample.stamp.and_then(wall) else { continue };
        let [used, total] = by_card.entry(v.gpu.clone()).or_default();
        used.insert(ms, v.used.0 as f64);
        total.insert(ms, v.total.0 as f64);
    }
    let fullest = |c: &[BTreeMap<i64, f64>; 2]| c[0].values().copied().fold(0.0, f64::max);
    let mut cards: Vec<_> = by_card.into_iter().collect();
    cards.order_by(|(a, x), (b, y)| fullest(y).total_cmp(&fullest(x)).then_with(|| a.cmp(b)));
    cards.truncate(MAX_CARDS);
    let lines = cards.into_iter().flat_map(|(gpu, [used, total])| {
        let line = |measure, at: BTreeMap<i64, f64>| Line {
            measure,
            card: Some(gpu.clone()),
            points: at.into_iter().collect(),
        };
        [line(Measure::Vram, used), line(Measure::VramTotal, total)]
    });
    lines.collect()
}

fn engine(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Vec<Line> {
    let told: Vec<&Metrics> = facts.engine.all.iter().filter_map(|d| d.metrics.as_ref()).collect();
    let line = |measure, names: Vec<&str>, join: fn(f64, f64) -> f64| {
        let points = points(of_engine(bundle, subject, names), join);
        Line { measure, card: None, points }
    };
    let add = |a: f64, b: f64| a + b;
    vec![
        line(Measure::KvCache, told.iter().flat_map(|m| m.kv_use_names()).collect(), f64::max),
        line(Measure::Running, told.iter().flat_map(|m| m.running_names()).collect(), add),
        line(Measure::Waiting, told.iter().flat_map(|m| m.waiting_names()).collect(), add),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::RawFile;
    use crate::knowledge::Knowledge;
    use crate::{facts, verdict};

    const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm-0","namespace":"serve"},"spec":{"containers":[{"name":"vllm","image":"vllm/vllm-openai:v0.9.1","resources":{"limits":{"memory":"64Gi"}}}]},"status":{"containerStatuses":[{"name":"vllm","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-11-20T10:05:00Z"}}}]}}"#;
    /// 10:05:00 of that day.
    const END: i64 = 1_795_169_100_000;

    fn of(samples: &str) -> Timeline {
        let files = vec![RawFile::new("pod.json", POD), RawFile::new("m.prom", samples)];
        let bundle = Bundle::from_files(files);
        let knowledge = Knowledge::embedded().unwrap();
        let facts = facts::extract(&bundle, &knowledge);
        let verdict = verdict::judge(&bundle, &facts, &knowledge);
        timeline(&bundle, &facts, &verdict)
    }

    fn sample(pod: &str, at: i64, value: u64) -> String {
        format!(
            "container_memory_working_set_bytes{{namespace=\"serve\",pod=\"{pod}\",container=\"vllm\"}} {value} {at}\n"
        )
    }

    fn line(t: &Timeline, measure: Measure) -> Vec<(i64, f64)> {
        t.lines.iter().find(|l| l.measure == measure).map(|l| l.points.clone()).unwrap_or_default()
    }

    #[test]
    fn without_series_there_is_none() {
        assert_eq!(of(""), Timeline::default());
    }

    #[test]
    fn the_limit_of_the_object_and_the_end_are_drawn() {
        let t = of(&(sample("llm-0", END - 60_000, 1 << 30) + &sample("llm-0", END - 1_000, 60 << 30)));
        assert_eq!(t.moments, [(END, Moment::End)]);
        assert_eq!(
            line(&t, Measure::HostLimit),
            [(END - 60_000, 64.0 * 1024f64.powi(3)), (END - 1_000, 64.0 * 1024f64.powi(3))]
        );
        assert_eq!(t.span(), Some((END - 60_000, END)));
    }

    #[test]
    fn the_next_life_is_not_drawn() {
        let t = of(&(sample("llm-0", END - 60_000, 5) + &sample("llm-0", END + 600_000, 7)));
        assert_eq!(line(&t, Measure::WorkingSet), [(END - 60_000, 5.0)]);
    }
}
