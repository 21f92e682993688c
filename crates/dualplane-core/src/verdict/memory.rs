//! Host RAM at one moment, from files and tools: what a cgroup's counters, `free` and `kubectl top` say for or against.

use super::{Cause, Cited, Class, Confidence, Decided, Plane, Subject};
use crate::evidence::host_model::{Cgroup, HostMemory};
use crate::evidence::{Bundle, ContainerStatus};
use crate::facts::Place;
use crate::units::Bytes;

/// A peak of this share of the limit touched it: the counter is a high-water mark in whole pages.
const REACHED: f64 = 0.99;
/// Below this share the limit was not reached; between the two nothing is said.
const CLEAR_OF_LIMIT: f64 = 0.9;
/// A statistic of less than this share of the limit was read after the memory was given back.
const STILL_FULL: f64 = 0.5;
/// A machine with less than this share available is short of memory: the kubelet evicts at 100 MiB, kernels reclaim before.
const SHORT: f64 = 0.05;

/// Cgroups and machines that are told of.
const TOLD: usize = 4;

/// Whose cgroup it is, the nearest to the death first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// Of the instance that died.
    Dead,
    /// Of the pod as a whole.
    Pod,
    /// Nothing tells.
    Unsaid,
    /// Of the instance that runs now: its counters began after the death.
    Running,
    /// Of another container or pod.
    Other,
}

pub(super) fn whose(c: &Cgroup, bundle: &Bundle, subject: &Subject) -> Whose {
    let pod = subject.pod_of(bundle);
    if let Some(id) = c.container_id() {
        let dead = subject.death.as_ref().and_then(|d| d.container_id.as_deref());
        if dead == Some(id.as_str()) {
            return Whose::Dead;
        }
        let own = pod.and_then(|p| p.containers.iter().find(|k| Some(&k.name) == subject.container.as_ref()));
        let mut ids =
            own.iter().filter_map(|k| k.status.as_ref()).flat_map(ContainerStatus::instance_ids).peekable();
        if ids.peek().is_some() {
            let known = ids.any(|i| i == id);
            // Alive or an instance between: not the one whose end is judged, unless no end is known.
            return match (known, dead) {
                (true, None) => Whose::Dead,
                (true, Some(_)) => Whose::Running,
                (false, _) => Whose::Other,
            };
        }
    }
    match (c.pod_uid(), pod.filter(|p| !p.uid.is_empty())) {
        (Some(uid), Some(p)) if uid == p.uid => Whose::Pod,
        (Some(_), Some(_)) => Whose::Other,
        _ => Whose::Unsaid,
    }
}

/// Adds what the numbers say to a verdict of the host plane.
pub(super) fn weigh(decided: &mut Decided, bundle: &Bundle, subject: &Subject) {
    if decided.class.plane() != Plane::Host {
        return;
    }
    let mut near: Vec<(Whose, &Cgroup)> =
        bundle.cgroups.iter().map(|c| (whose(c, bundle, subject), c)).collect();
    near.retain(|(w, _)| !matches!(w, Whose::Other | Whose::Running));
    near.sort_by_key(|(w, _)| *w);
    for (whose, c) in near.into_iter().take(TOLD) {
        cgroup(decided, c, whose);
    }
    let here = |m: &&HostMemory| m.node.as_ref().zip(subject.node.as_ref()).is_none_or(|(a, b)| a == b);
    for m in bundle.machines.iter().filter(here).take(TOLD) {
        machine(decided, m);
    }
    let limit = subject.memory_limit;
    for t in bundle
        .tops
        .iter()
        .filter(|t| {
            Some(&t.pod) == subject.pod.as_ref()
                && t.container.as_ref().zip(subject.container.as_ref()).is_none_or(|(a, b)| a == b)
                && t.namespace.as_ref().zip(subject.namespace.as_ref()).is_none_or(|(a, b)| a == b)
        })
        .take(TOLD)
    {
        let Some(limit) = limit.filter(|l| l.0 > 0) else { continue };
        let share = t.memory.share_of(limit);
        let place = Place { file: t.file.clone(), line: Some(t.line) };
        if share >= CLEAR_OF_LIMIT {
            let text = format!(
                "{} showed a working set of {} ({:.0} % of the limit {}), at a time that is not told",
                t.tool,
                t.memory,
                share * 100.0,
                limit.k8s()
            );
            decided.supports.push(Cited::at(text, &place));
        }
    }
}

fn cgroup(decided: &mut Decided, c: &Cgroup, whose: Whose) {
    let limit = c.limit.as_ref().map(|l| l.bytes).filter(|l| l.0 > 0);
    if let Some((peak, limit)) = c.peak.as_ref().zip(limit) {
        let share = peak.bytes.share_of(limit);
        let text =
            format!("the cgroup's peak is {} of its limit {limit} ({:.1} %)", peak.bytes, share * 100.0);
        if share >= REACHED {
            decided.supports.push(Cited::at(text, &peak.place));
        } else if share < CLEAR_OF_LIMIT && whose == Whose::Dead && decided.class == Class::HostOomKilled {
            decided.against.push(Cited::at(text, &peak.place));
        }
    }
    if let Some(k) = c.oom_kill.as_ref().filter(|k| k.count > 0) {
        let text = format!("the cgroup counts {} OOM kill(s)", k.count);
        if !decided.supports.iter().any(|s| s.place.as_ref() == Some(&k.place)) {
            decided.supports.push(Cited::at(text, &k.place));
        }
    }
    if let Some(k) = c.oom_kill.as_ref().filter(|k| k.count == 0 && whose == Whose::Dead) {
        let text = "the cgroup of the dead instance counts no OOM kill";
        decided.against.push(Cited::at(text, &k.place));
        decided.confidence = decided.confidence.min(Confidence::Medium);
    }
    split(decided, c);
}

/// Anonymous memory, page cache and tmpfs, where they were read while the memory was still held.
fn split(decided: &mut Decided, c: &Cgroup) {
    let Some((anon, file)) = c.anon.as_ref().zip(c.file_pages.as_ref()) else { return };
    let whole = c.limit.as_ref().or(c.peak.as_ref()).map(|r| r.bytes);
    let sum = anon.bytes.saturating_add(file.bytes);
    if whole.is_none_or(|w| sum.share_of(w) < STILL_FULL) {
        return;
    }
    let shmem = c.shmem.as_ref().map(|s| s.bytes).unwrap_or_default();
    let cache = file.bytes.saturating_sub(shmem);
    let text = format!(
        "of it anonymous memory {}, tmpfs, shared and pinned memory {shmem}, page cache {cache} (which alone can be dropped)",
        anon.bytes
    );
    decided.supports.push(Cited::at(text, &anon.place));
}

fn machine(decided: &mut Decided, m: &HostMemory) {
    let place = Place { file: m.file.clone(), line: Some(m.line) };
    let when = "a snapshot of its own time";
    if let Some((available, total)) = m.available.zip(m.total.filter(|t| t.0 > 0)) {
        let share = available.share_of(total);
        let text = format!(
            "{} shows {available} of {total} available on the machine ({:.1} %): {when}",
            m.tool,
            share * 100.0
        );
        match decided.class {
            Class::HostNodeOom if share < SHORT => decided.supports.push(Cited::at(text, &place)),
            Class::HostNodeOom => decided
                .against
                .push(Cited::at(format!("{text}, and what was killed has given its memory back"), &place)),
            _ => {}
        }
    }
    if let Some(percent) = m.used_percent.filter(|p| *p >= 90 && decided.class == Class::HostNodeOom) {
        let used = m.used.unwrap_or(Bytes(0));
        let name = m.node.as_deref().unwrap_or("the node");
        let text = format!("{} shows {name} at {percent} % ({used}): {when}", m.tool);
        decided.supports.push(Cited::at(text, &place));
    }
}

/// A cgroup that counts no OOM kill rules one out for what lived in it, where the verdict lies elsewhere.
pub(super) fn no_kill(
    bundle: &Bundle,
    decided: &Decided,
    subject: &Subject,
    causes: &[Cause],
) -> Option<Cause> {
    let rejected = |c: &Cause| c.class == Class::HostOomKilled && c.rejected;
    if decided.class.plane() == Plane::Host || causes.iter().any(rejected) {
        return None;
    }
    let against: Vec<Cited> = bundle
        .cgroups
        .iter()
        .filter_map(|c| Some((c, c.oom_kill.as_ref().filter(|k| k.count == 0)?, whose(c, bundle, subject))))
        .filter(|(_, _, w)| *w != Whose::Other)
        .map(|(_, k, w)| {
            let text = match w {
                Whose::Dead => "the cgroup of the dead instance counts no OOM kill",
                Whose::Pod => "the pod's cgroup counts no OOM kill in any of its containers",
                Whose::Running => "the cgroup of the instance that runs now counts no OOM kill: its counters began after the death and say nothing of it",
                _ => "a cgroup counts no OOM kill; a container that was started again has new counters, and nothing tells which instance this is of",
            };
            Cited::at(text, &k.place)
        })
        .take(4)
        .collect();
    (!against.is_empty()).then(|| Cause::no_kill(against))
}
