//! Causal order: which of several memory errors came first, and which kernel records are this pod's at all.
//!
//! Print order is not cause order: wrappers print first, clocks differ, a later restart prints into the same kernel
//! log. Two stamps are compared only where both clocks allow it; otherwise the kernel's and driver's word precedes the
//! engine's, except that a sized VRAM error in the dead instance's own log was printed before that instance was killed.

use super::candidates::{Candidate, From, Weight};
use super::lives::{
    before_the_start, before_this_run, lived_between, of_an_earlier_life, recovered, served_nothing_after,
};
use super::{Class, Confidence, Subject};
use crate::evidence::{Bundle, ContainerStatus, Role};
use crate::facts::Facts;
use crate::knowledge::Mark;

/// Two errors further apart than this did not cause one another.
pub(super) const LINKED_MS: i64 = 15 * 60 * 1000;
/// Clocks of container, kubelet and kernel log (`dmesg -T` drifts) agree about this well.
const SKEW_MS: i64 = 1_000;

/// Candidates that are memory errors of this incident in causal order, each class once; empty where there is none.
pub(super) fn causal(all: &[Candidate], facts: &Facts, subject: &Subject) -> Vec<Candidate> {
    let mut firsts: Vec<&Candidate> = Vec::new();
    let fatal: Vec<&Candidate> = all
        .iter()
        .filter(|c| {
            c.weight == Weight::Fatal && !of_an_earlier_life(c, facts) && !before_the_start(c, subject)
        })
        .collect();
    // One representative a source kind: the first of it in time or print order.
    let kill =
        |c: &&&Candidate| matches!(c.class, Class::HostOomKilled | Class::HostNodeOom) && c.from != From::Log;
    let kills: Vec<&&Candidate> = fatal.iter().filter(kill).collect();
    let kill = first_kill(&kills);
    let mut hardware: Vec<&Candidate> =
        fatal.iter().copied().filter(|c| c.class == Class::XidHardware && c.from == From::Kernel).collect();
    // Xids and other driver lines of one kernel log were collected apart: the log's own order counts.
    let later: Vec<&&Candidate> = fatal.iter().filter(|c| c.class != Class::XidHardware).collect();
    hardware.retain(|c| !before_this_run(c, facts) && !later.iter().any(|l| lived_between(c, l, facts)));
    hardware.sort_by_key(|c| c.place.clone());
    let hardware = first_fault(&hardware);
    let driver =
        first_of(fatal.iter().filter(|c| c.from == From::Kernel && c.class == Class::HostAllocFailure));
    let log = first_in_logs(fatal.iter().filter(|c| c.from == From::Log));
    let others = first_of(fatal.iter().filter(|c| {
        matches!(c.from, From::Event | From::Status)
            && !matches!(c.class, Class::HostOomKilled | Class::HostNodeOom)
    }));
    for c in [hardware, driver, log, kill, others].into_iter().flatten() {
        insert(&mut firsts, c, facts);
    }
    if firsts.is_empty() {
        return Vec::new();
    }
    let mut out: Vec<Candidate> = firsts.into_iter().cloned().collect();
    // Other classes that the same logs show later (a rank with another first error, KV pressure before the end).
    for c in all.iter().filter(|c| c.weight <= Weight::Degraded) {
        if !out.iter().any(|o| o.class == c.class) {
            out.push(c.clone());
        }
    }
    if let Some(earlier) = out.first().and_then(|first| first_sign(first, all)) {
        out.insert(0, earlier.clone());
    }
    merge_same_class(&mut out);
    out
}

/// The same shortage, met shortly before it ended the process: a bus error on a /dev/shm that was just said to be full.
fn first_sign<'a>(first: &Candidate, all: &'a [Candidate]) -> Option<&'a Candidate> {
    /// What is longer ago was another request's.
    const SHORTLY_MS: i64 = 60_000;
    let place =
        first.place.as_ref().filter(|_| first.from == From::Log && first.class == Class::HostAllocFailure)?;
    all.iter().find(|c| {
        let before = c.place.as_ref().is_some_and(|p| p.file == place.file && p.line < place.line);
        let apart = c.stamp.zip(first.stamp).and_then(|(c, f)| c.ms_until(f));
        c.weight == Weight::Degraded
            && c.class == first.class
            && c.from == From::Log
            && before
            && apart.is_none_or(|ms| (0..=SHORTLY_MS).contains(&ms))
    })
}

/// A verdict of "not memory" tells the memory errors that were survived before.
pub(super) fn tell_survived(all: &[Candidate], facts: &Facts, decided: &mut super::Decided) {
    if decided.class != Class::NotMemory {
        return;
    }
    for c in all.iter().filter(|c| c.survived || of_an_earlier_life(c, facts)) {
        if !decided.sequence.iter().any(|s| s.class == c.class) {
            decided.sequence.push(super::Step {
                class: c.class,
                phase: c.phase,
                what: format!("{} (the server served after it)", c.what),
                trigger: c.trigger(),
            });
        }
    }
}

/// OOM kills in other containers of the pod, and in earlier instances, beside a verdict that is none of them.
pub(super) fn tell_other_kills(
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
    decided: &mut super::Decided,
) {
    const TOLD: usize = 3;
    if decided.class.plane() == super::Plane::Host {
        return;
    }
    let Some(pod) = subject.pod_of(bundle) else { return };
    let uids = [Some(pod.uid.as_str()).filter(|u| !u.is_empty()), pod.config_hash.as_deref()];
    let mut told: Vec<String> = Vec::new();
    for oom in &facts.ooms {
        let id = oom.container_id();
        let of = |c: &&crate::evidence::Container| {
            let ids = c.status.iter().flat_map(ContainerStatus::instance_ids);
            id.as_deref().is_some_and(|id| ids.into_iter().any(|i| i == id))
        };
        let owner = pod.containers.iter().find(of);
        let known = |s: &super::Step| s.trigger.as_ref().is_some_and(|t| t.place == oom.place);
        if decided.sequence.iter().any(known)
            || owner.is_some_and(|c| c.overcame().is_some())
            || owner.is_none() && !oom.pod_uid().is_some_and(|u| uids.contains(&Some(u.as_str())))
        {
            continue;
        }
        let whose = match owner {
            Some(c) if Some(&c.name) != subject.container.as_ref() => {
                format!("container {}, another one of the pod", crate::text::name(&c.name))
            }
            Some(_) => "this container".to_owned(),
            None => "an earlier container of the pod".to_owned(),
        };
        if told.contains(&whose) || told.len() >= TOLD {
            continue;
        }
        let stamp = oom.stamp;
        let what = format!("the kernel OOM-killed a process of {whose}");
        told.push(whose);
        let trigger = super::Trigger {
            place: oom.place.clone(),
            text: oom.text.clone(),
            stamp,
            signature: "kernel.oom_killer".into(),
        };
        decided.sequence.push(super::Step {
            class: Class::HostOomKilled,
            phase: decided.phase,
            what,
            trigger: Some(trigger),
        });
    }
}

/// The first fault of a GPU; one that a program may have caused (an illegal access, a time-out) leads only where no fault
/// of the same GPU's hardware came with it.
fn first_fault<'a>(faults: &[&'a Candidate]) -> Option<&'a Candidate> {
    let first = faults.first().copied()?;
    let Some((pci, false)) = &first.gpu else { return Some(first) };
    let linked = |c: &&&Candidate| {
        let apart = first.stamp.zip(c.stamp).and_then(|(f, c)| f.ms_until(c));
        apart.is_none_or(|ms| ms.abs() <= LINKED_MS)
    };
    let leads = |c: &&&Candidate| c.gpu.as_ref().is_some_and(|(p, leads)| p == pci && *leads);
    faults.iter().filter(linked).find(leads).copied().or(Some(first))
}

fn first_of<'a>(mut it: impl Iterator<Item = &'a &'a Candidate>) -> Option<&'a Candidate> {
    it.next().copied()
}

/// The kernel's record before the event, the event before the status: the same death told three times.
fn first_kill<'a>(kills: &[&&'a Candidate]) -> Option<&'a Candidate> {
    for from in [From::Kernel, From::Event, From::Status, From::Cgroup, From::Metrics] {
        let mut of_source = kills.iter().filter(|c| c.from == from);
        let Some(mut first) = of_source.next() else { continue };
        // Events are listed in no order; kernel records are in theirs.
        for c in of_source.filter(|_| from == From::Event) {
            if c.stamp.zip(first.stamp).and_then(|(c, f)| c.ms_until(f)).is_some_and(|ms| ms > 0) {
                first = c;
            }
        }
        return Some(first);
    }
    None
}

/// First fatal line over several logs: by time where all tell it, else the dead instance's log before others.
fn first_in_logs<'a>(hits: impl Iterator<Item = &'a &'a Candidate>) -> Option<&'a Candidate> {
    let hits: Vec<&Candidate> = hits.copied().collect();
    let role_rank = |c: &Candidate| match c.role {
        Role::Previous => 0,
        Role::Unsaid => 1,
        Role::Current => 2,
        Role::Peer => 3,
    };
    // The first of each process in each file (ranks interleave and are flushed late), then the earliest of them.
    let mut firsts: Vec<&Candidate> = Vec::new();
    for c in hits {
        let same = |f: &&Candidate| {
            f.process == c.process && f.place.as_ref().map(|p| &p.file) == c.place.as_ref().map(|p| &p.file)
        };
        if !firsts.iter().any(same) {
            firsts.push(c);
        }
    }
    let mut best: Option<&Candidate> = None;
    for c in firsts {
        best = match best {
            None => Some(c),
            Some(b) => match b.stamp.zip(c.stamp).and_then(|(b, c)| b.ms_until(c)) {
                Some(ms) if ms != 0 => Some(if ms < 0 { c } else { b }),
                _ => Some(if role_rank(c) < role_rank(b) { c } else { b }),
            },
        };
    }
    best
}

/// Puts a candidate before or behind those already in order.
fn insert<'a>(chain: &mut Vec<&'a Candidate>, c: &'a Candidate, facts: &Facts) {
    let at = chain.iter().position(|o| precedes(c, o, facts)).unwrap_or(chain.len());
    chain.insert(at, c);
}

/// Whether `a` came before `b` in cause.
fn precedes(a: &Candidate, b: &Candidate, facts: &Facts) -> bool {
    let gap = a.stamp.zip(b.stamp).and_then(|(a, b)| a.ms_until(b));
    let log_and_other = |log: &Candidate, other: &Candidate, log_first_ms: Option<i64>| -> bool {
        // True when the log's error came first.
        let kill = matches!(other.class, Class::HostOomKilled | Class::HostNodeOom);
        match log_first_ms {
            Some(ms) if ms.abs() > LINKED_MS && kill && !(ms > 0 && served_nothing_after(log, facts)) => {
                false
            }
            Some(ms) if kill => ms >= -SKEW_MS && !recovered(log, facts) && !worker_gone_before(log, facts),
            Some(ms) => {
                ms > SKEW_MS
                    && other.from == From::Kernel
                    && log.class.plane() == super::Plane::Gpu
                    && sized(log)
            }
            // No common clock. An instance's own VRAM error was printed before that instance was killed.
            None if kill => {
                log.class.plane() == super::Plane::Gpu
                    && !recovered(log, facts)
                    && !worker_gone_before(log, facts)
            }
            // An application fault (Xid 13, 31, 43) behind a sized VRAM error is the teardown.
            None => other.confidence < Confidence::High && sized(log) && log.class != Class::XidHardware,
        }
    };
    match (a.from, b.from) {
        (From::Log, From::Log) => gap.is_some_and(|ms| ms > 0),
        (From::Log, _) => log_and_other(a, b, gap),
        (_, From::Log) => !log_and_other(b, a, gap.map(|g| -g)),
        (From::Kernel, From::Kernel) => match (&a.place, &b.place) {
            (Some(pa), Some(pb)) if pa.file == pb.file => pa.line < pb.line,
            _ => gap.is_some_and(|ms| ms > 0),
        },
        (From::Kernel, _) => true,
        (_, From::Kernel) => false,
        _ => gap.is_some_and(|ms| ms > 0),
    }
}

/// The error carries sizes, so it is what it says and not an asynchronous echo of something else.
fn sized(c: &Candidate) -> bool {
    crate::facts::vram::parse(&c.text).is_some_and(|o| o.requested.is_some())
}

/// A process was already gone when the error was printed: the error is what its end left behind.
fn worker_gone_before(c: &Candidate, facts: &Facts) -> bool {
    let Some(place) = &c.place else { return false };
    facts
        .hits
        .iter()
        .any(|h| h.mark == Mark::Death && h.place.file == place.file && h.place.line < place.line)
}

/// The same class told by kernel, event and status is one step; its evidence is joined.
fn merge_same_class(chain: &mut Vec<Candidate>) {
    let mut out: Vec<Candidate> = Vec::new();
    for c in chain.drain(..) {
        match out.iter_mut().find(|o| o.class == c.class) {
            Some(first) => {
                for s in c.supports {
                    if first.supports.len() < 16 && !first.supports.contains(&s) {
                        first.supports.push(s);
                    }
                }
            }
            None => out.push(c),
        }
    }
    // A node OOM whose victim sits in a container shows as OOMKilled in the status: one death, not two.
    if out.iter().any(|c| c.class == Class::HostNodeOom && c.from == From::Kernel) {
        out.retain(|c| c.class != Class::HostOomKilled || c.from == From::Kernel);
    }
    *chain = out;
}
