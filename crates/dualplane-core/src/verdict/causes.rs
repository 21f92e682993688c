//! Ranked causes: the one that was settled on with what lies beneath it, and those that were ruled out and why.

use super::candidates::{Candidate, Weight, oom_counter, oom_reason};
use super::proof::{Cgroup, HostPool, Kernel, Log, Proof, Series, Status};
use super::{Cause, Cited, Class, Confidence, Decided, Plane, Step, Subject};
use crate::evidence::metrics::last_before;
use crate::evidence::{Bundle, Change, Rollout};
use crate::facts::{Facts, Place};
use crate::units::Bytes;

pub(super) fn rank(
    bundle: &Bundle,
    facts: &Facts,
    decided: &Decided,
    all: &[Candidate],
    subject: &Subject,
) -> Vec<Cause> {
    let mut causes = vec![Cause {
        class: decided.class,
        title: decided.summary.clone(),
        confidence: decided.confidence,
        rejected: false,
        supports: decided.supports.clone(),
        against: decided.against.clone(),
    }];
    if matches!(decided.class, Class::HostOomKilled | Class::HostNodeOom) {
        causes.extend(host_growth(facts, subject));
    }
    causes.extend(super::churn::cause(facts, decided));
    for step in decided.sequence.iter().skip(1) {
        causes.push(Cause {
            class: step.class,
            title: format!("{}: {}", beside(&decided.sequence, step), step.what),
            confidence: Confidence::Medium,
            rejected: false,
            supports: step
                .trigger
                .iter()
                .map(|t| {
                    let text = crate::text::shorten(t.text.trim(), 200).into_owned();
                    Cited::at(Proof::Line { signature: t.signature.clone(), text }, &t.place)
                })
                .collect(),
            against: Vec::new(),
        });
    }
    for c in all.iter().filter(|c| c.weight == Weight::Suspect && c.class != decided.class) {
        if !causes.iter().any(|k| k.class == c.class) {
            causes.push(Cause {
                class: c.class,
                title: c.what.clone(),
                confidence: Confidence::Low,
                rejected: true,
                supports: c.supports.clone(),
                against: vec![Cited::plain(Log::Fallback)],
            });
        }
    }
    causes.extend(in_other_containers(bundle, subject));
    causes.extend(super::gpus::hints(bundle, facts, decided, subject.node.as_deref()));
    causes.extend(other_plane(bundle, facts, decided, subject));
    causes.extend(super::memory::no_kill(bundle, decided, subject, &causes));
    causes
}

/// Of each roll-out before the death the fields that bear on the class: what changed shortly before is the first thing
/// people ask.
#[must_use]
pub fn bearing_changes<'b>(
    bundle: &'b Bundle,
    class: Class,
    subject: &Subject,
) -> Vec<(&'b Rollout, Vec<&'b Change>)> {
    let died = subject.death.as_ref().and_then(|d| d.finished);
    let after =
        |r: &Rollout| r.at.zip(died).and_then(|(at, died)| at.ms_until(died)).is_some_and(|ms| ms < 0);
    let here =
        |c: &Change| c.container.is_none() || subject.container.is_none() || c.container == subject.container;
    let of = |r: &'b Rollout| {
        let changes: Vec<&Change> =
            r.changes.iter().filter(|c| here(c) && bears_on(&c.field, class)).collect();
        (!changes.is_empty()).then_some((r, changes))
    };
    bundle.rollouts.iter().filter(|r| !after(r)).filter_map(of).collect()
}

/// Whether a field can make a death of this class. A flag of the engine can make any of them but a node's.
fn bears_on(field: &str, class: Class) -> bool {
    let flag = field.starts_with('-') || field.starts_with("env ") || field == "image";
    let host = field.starts_with("resources.") && field.ends_with(".memory") || field.starts_with("volumes[");
    let gpu = field.starts_with("resources.limits.") && !field.ends_with("memory") && !field.ends_with("cpu");
    match class.plane() {
        Plane::Host => flag || host,
        Plane::Gpu => flag || gpu,
        _ => false,
    }
}

/// Metrics that tell of OOM kills in the pod's other containers: their own trouble, and worth to know.
fn in_other_containers(bundle: &Bundle, subject: &Subject) -> Vec<Cause> {
    let Some(pod) = subject.pod_of(bundle) else { return Vec::new() };
    let others = pod.containers.iter().filter(|c| !subject.is_container(c));
    let told = others.filter_map(|c| {
        let sample = oom_counter(bundle, pod, c).or_else(|| oom_reason(bundle, pod, c))?;
        let at = Place { file: sample.file.clone(), line: Some(sample.line) };
        Some(Cause {
            class: Class::HostOomKilled,
            title: format!(
                "in addition, {} reports an OOM kill in container {}",
                sample.name,
                crate::text::name(&c.name)
            ),
            confidence: Confidence::Low,
            rejected: false,
            supports: vec![Cited::at(Series::Sample { name: sample.name.clone(), value: sample.value }, &at)],
            against: vec![Cited::plain(Series::OtherContainer)],
        })
    });
    // A pod has a handful of containers.
    told.take(8).collect()
}

/// How a further step stands to the first one: a stale gauge has no time, and an error that was survived came before.
fn beside(sequence: &[Step], step: &Step) -> &'static str {
    let stamp = |s: &Step| s.trigger.as_ref().and_then(|t| t.stamp);
    match sequence.first().and_then(stamp).zip(stamp(step)).and_then(|(first, s)| first.ms_until(s)) {
        Some(ms) if ms < 0 => "earlier",
        Some(_) => "after it",
        None => "besides",
    }
}

/// What filled the host's memory, where the evidence carries it.
fn host_growth(facts: &Facts, subject: &Subject) -> Vec<Cause> {
    let mut out = Vec::new();
    let pools = &facts.host_pools;
    let size = |name, arithmetic| HostPool::Size { name, arithmetic };
    let limit = memory_limit(facts, subject);
    let sum = pools.iter().fold(Bytes(0), |s, p| s.saturating_add(p.bytes));
    if let Some(limit) = limit.filter(|l| sum.0 > 0 && sum > *l) {
        let names: Vec<&str> = pools.iter().map(|p| p.name.as_str()).collect();
        out.push(Cause {
            class: Class::HostOomKilled,
            title: format!("{} may use {sum} in total, more than the limit of {limit}", names.join(" + ")),
            confidence: if pools.iter().any(|p| p.bound) { Confidence::Medium } else { Confidence::High },
            rejected: false,
            supports: pools
                .iter()
                .map(|p| Cited::at(size(Some(p.name.clone()), p.arithmetic.clone()), &p.place))
                .collect(),
            against: pools
                .iter()
                .filter(|p| p.bound)
                .map(|p| Cited::plain(HostPool::UpperBound(p.name.clone())))
                .collect(),
        });
    } else {
        for p in pools {
            let share = limit
                .map(|l| format!(" ({:.0} % of the limit {l})", p.bytes.share_of(l) * 100.0))
                .unwrap_or_default();
            out.push(Cause {
                class: Class::HostOomKilled,
                title: format!("{} uses up to {}{share} of host RAM", p.name, p.bytes),
                confidence: Confidence::Low,
                rejected: false,
                supports: vec![Cited::at(size(None, p.arithmetic.clone()), &p.place)],
                against: limit.map(|_| Cited::plain(HostPool::BelowLimit)).into_iter().collect(),
            });
        }
    }
    /// Most of it.
    const FILLS: f64 = 0.5;
    if let Some((oom, (anon, shmem, file))) = subject.kill_of(facts).and_then(|o| Some((o, o.held()?)))
        && let Some(limit) = oom.limit.filter(|l| shmem > anon && shmem.share_of(*l) > FILLS)
    {
        out.push(Cause {
            class: Class::HostOomKilled,
            title: format!(
                "tmpfs or shared memory fills the limit: {shmem} of {limit}, beside {anon} of the processes' own"
            ),
            confidence: Confidence::Medium,
            rejected: false,
            supports: vec![Cited::at(
                Cgroup::breakdown(anon, shmem, file),
                &oom.place,
            )],
            against: Vec::new(),
        });
        return out;
    }
    let victim = subject.kill_of(facts).and_then(|o| o.victims.first().map(|v| (o, v)));
    if let Some((oom, v)) = victim
        && let (Some(shmem), Some(anon)) = (v.shmem, v.anon)
        && shmem > anon
        && shmem.0 > (1 << 30)
    {
        out.push(Cause {
            class: Class::HostOomKilled,
            title: format!(
                "most of the killed process was pinned or shared memory ({shmem}), not heap \
            ({anon})"
            ),
            confidence: Confidence::Medium,
            rejected: false,
            supports: vec![Cited::at(Kernel::PinnedMemory { shmem, anon }, &oom.place)],
            against: Vec::new(),
        });
    }
    out
}

/// The limit that was hit, from the kernel or the pod.
#[must_use]
pub fn memory_limit(facts: &Facts, subject: &Subject) -> Option<Bytes> {
    subject.kill_of(facts).and_then(|o| o.limit).or(subject.memory_limit)
}

/// Why it was not the other plane: the question that costs teams their hours.
fn other_plane(bundle: &Bundle, facts: &Facts, decided: &Decided, subject: &Subject) -> Option<Cause> {
    let gpu_error = facts.hits.iter().find(|h| {
        h.mark == crate::knowledge::Mark::Fatal && h.class.is_some_and(|c| c.plane() == Plane::Gpu)
    });
    let logs: Vec<&crate::facts::LogSummary> =
        facts.logs.iter().filter(|l| !l.kernel && l.lines > 0).collect();
    let lines: u64 = logs.iter().map(|l| l.total()).sum();
    match decided.class.plane() {
        Plane::Host if gpu_error.is_none() => {
            let mut against = Vec::new();
            if lines > 0 {
                against.push(Cited::plain(Log::NoVramError { lines, files: logs.len() }));
            }
            let usage = bundle.metrics.iter().filter(|s| {
                s.name.ends_with("kv_cache_usage_perc") || s.name.ends_with("gpu_cache_usage_perc")
            });
            let usage = last_before(usage, subject.death.as_ref().and_then(|d| d.finished));
            if let Some(s) = usage {
                let at = Place { file: s.file.clone(), line: Some(s.line) };
                against.push(Cited::at(Series::KvCache(s.value), &at));
            }
            (!against.is_empty()).then(|| Cause {
                class: Class::CudaOomRuntime,
                title: "VRAM ran out".into(),
                confidence: Confidence::Low,
                rejected: true,
                supports: Vec::new(),
                against,
            })
        }
        Plane::Gpu => {
            let mut against = Vec::new();
            let file = subject.pod_of(bundle).map(|p| p.file.clone());
            let end = subject.death.as_ref().filter(|d| d.not_oom_killed());
            if let Some((end, file)) = end.zip(file) {
                let proof = Status::EndedNotOomKilled(Box::new(end.clone()));
                against.push(Cited::at(proof, &Place { file, line: None }));
            }
            if facts.logs.iter().any(|l| l.kernel) && facts.ooms.is_empty() {
                against.push(Cited::plain(Kernel::NoOomRecord));
            }
            (!against.is_empty()).then(|| Cause::no_kill(against))
        }
        _ => None,
    }
}
