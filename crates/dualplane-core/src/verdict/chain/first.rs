//! The first error of each kind of source.

use super::LINKED_MS;
use crate::evidence::Role;
use crate::verdict::candidates::{Candidate, Source};

/// The first fault of a GPU; one that a program may have caused (an illegal access, a time-out) leads only where no fault
/// of the same GPU's hardware came with it.
pub(super) fn fault<'a>(faults: &[&'a Candidate]) -> Option<&'a Candidate> {
    let first = faults.first().copied()?;
    let Some((pci, false)) = &first.gpu else { return Some(first) };
    let linked = |c: &&&Candidate| {
        let apart = first.stamp.zip(c.stamp).and_then(|(f, c)| f.ms_until(c));
        apart.is_none_or(|ms| ms.abs() <= LINKED_MS)
    };
    let leads = |c: &&&Candidate| c.gpu.as_ref().is_some_and(|(p, leads)| p == pci && *leads);
    faults.iter().filter(linked).find(leads).copied().or(Some(first))
}

/// The kernel's record before the event, the event before the status: the same death told several times.
pub(super) fn kill<'a>(kills: &[&'a Candidate]) -> Option<&'a Candidate> {
    for from in [Source::Kernel, Source::Event, Source::Status, Source::Cgroup, Source::Metrics] {
        let mut of_source = kills.iter().copied().filter(|c| c.from == from);
        let Some(mut first) = of_source.next() else { continue };
        // Events are listed in no order; kernel records are in theirs.
        for c in of_source.filter(|_| from == Source::Event) {
            if c.stamp.zip(first.stamp).and_then(|(c, f)| c.ms_until(f)).is_some_and(|ms| ms > 0) {
                first = c;
            }
        }
        return Some(first);
    }
    None
}

/// First fatal line over several logs: by time where all tell it on one clock, else the dead instance's log before others.
pub(super) fn in_logs<'a>(hits: &[&'a Candidate]) -> Option<&'a Candidate> {
    // The first of each process in each file (ranks interleave and are flushed late), then the earliest of them.
    let mut firsts: Vec<&'a Candidate> = Vec::new();
    for c in hits {
        let file = |c: &Candidate| c.place.as_ref().map(|p| p.file.clone());
        if !firsts.iter().any(|f| f.process == c.process && file(f) == file(c)) {
            firsts.push(c);
        }
    }
    if let Some(earliest) = earliest(&firsts) {
        return Some(earliest);
    }
    // Two logs without a common clock cannot be compared; a third between them would only seem to do it.
    let dead = firsts.iter().map(|c| role_rank(c)).min()?;
    firsts.retain(|c| role_rank(c) == dead);
    earliest(&firsts).or(firsts.first().copied())
}

/// The earliest, where all tell the time on one clock; of one moment that of the dead instance's log.
fn earliest<'a>(all: &[&'a Candidate]) -> Option<&'a Candidate> {
    let zero = all.first()?.stamp?;
    let mut timed = Vec::with_capacity(all.len());
    for c in all {
        timed.push((zero.ms_until(c.stamp?)?, role_rank(c), *c));
    }
    timed.into_iter().min_by_key(|(ms, role, _)| (*ms, *role)).map(|(.., c)| c)
}

fn role_rank(c: &Candidate) -> u8 {
    match c.role {
        Role::Previous => 0,
        Role::Unsaid => 1,
        Role::Current => 2,
        Role::Peer => 3,
    }
}
