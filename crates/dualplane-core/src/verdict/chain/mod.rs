//! The causal chain: which of several memory errors came first, and what followed.
//!
//! Print order is not cause order: wrappers print first, clocks differ, a later restart prints into the same kernel log.
//! Each source gives its first error (`first`), and one key puts these into order (`key`).

mod first;
mod key;

use super::candidates::{Candidate, Source, Weight};
use super::server_runs::{
    before_it_ran, before_the_start, before_this_run, lived_between, of_an_earlier_life,
};
use super::{Class, Subject};
use crate::facts::{Facts, Place};
use dualplane_base::order::Order as _;
use key::Links;
use std::collections::BTreeMap;

/// Two errors further apart than this did not cause one another.
pub(super) const LINKED_MS: i64 = 15 * 60 * 1000;

/// Candidates that are memory errors of this incident in causal order, each class once; empty where there is none.
pub(super) fn causal(all: &[Candidate], facts: &Facts, subject: &Subject) -> Vec<Candidate> {
    let of_this_life = |c: &&Candidate| {
        !of_an_earlier_life(c, facts) && !before_the_start(c, subject) && !before_it_ran(c, subject)
    };
    let mut fatal: Vec<&Candidate> =
        all.iter().filter(|c| c.weight == Weight::Fatal).filter(of_this_life).collect();
    // A fault of some card of the node ends no process with an error of memory: what died of memory had a card that worked.
    let of_memory = fatal.iter().any(|c| c.class != Class::XidHardware && !c.untied);
    let worked = |c: &&Candidate| {
        !(of_memory && c.from == Source::Kernel && c.class == Class::XidHardware && c.untied)
    };
    fatal.retain(worked);
    let firsts = links(&fatal, facts).in_order(facts);
    if firsts.is_empty() {
        return Vec::new();
    }
    let mut out: Vec<Candidate> = firsts.into_iter().cloned().collect();
    // Other classes that the same logs show later (a rank with another first error, KV pressure before the end).
    for c in read_once(all).filter(|c| c.weight <= Weight::Degraded).filter(worked) {
        if !out.iter().any(|o| o.class == c.class) {
            // What ended a life before this one is told, and followed of nothing.
            out.push(Candidate { untied: c.untied || !of_this_life(&c), ..c.clone() });
        }
    }
    if let Some(earlier) = out.first().and_then(|first| first_sign(first, all)) {
        out.insert(0, earlier.clone());
    }
    merge_same_class(&mut out);
    out
}

/// Several signatures may know one line of a log. Only one of them reads it, the strongest and then the first: a failed pin of host RAM,
/// in the words of the GPU's own memory, is no error of the GPU that followed.
fn read_once(all: &[Candidate]) -> impl Iterator<Item = &Candidate> {
    let line = |c: &'_ Candidate| c.from == Source::Log && c.place.as_ref().is_some_and(|p| p.line.is_some());
    let mut readers: BTreeMap<&Place, (Weight, usize)> = BTreeMap::new();
    for (n, c) in all.iter().enumerate().filter(|(_, c)| line(c)) {
        let Some(place) = &c.place else { continue };
        let reader = readers.entry(place).or_insert((c.weight, n));
        *reader = (*reader).min((c.weight, n));
    }
    let reads = move |n: usize, c: &Candidate| {
        c.place.as_ref().and_then(|p| readers.get(p)).is_none_or(|(_, reader)| *reader == n)
    };
    all.iter().enumerate().filter(move |(n, c)| !line(c) || reads(*n, c)).map(|(_, c)| c)
}

/// One representative a kind of source: the first of it in time or print order.
fn links<'a>(fatal: &[&'a Candidate], facts: &Facts) -> Links<'a> {
    let is_kill = |c: &Candidate| matches!(c.class, Class::HostOomKilled | Class::HostNodeOom);
    let of = |f: &dyn Fn(&Candidate) -> bool| -> Vec<&'a Candidate> {
        fatal.iter().copied().filter(|c| f(c)).collect()
    };
    let mut faults = of(&|c| c.class == Class::XidHardware && c.from == Source::Kernel);
    // Xids and other driver lines of one kernel log were collected apart: the log's own order counts.
    let later = of(&|c| c.class != Class::XidHardware);
    faults.retain(|c| !before_this_run(c, facts) && !later.iter().any(|l| lived_between(c, l, facts)));
    faults.order_by_key(|c| c.place.clone());
    Links {
        fault: first::fault(&faults),
        driver: of(&|c| c.from == Source::Kernel && c.class == Class::HostAllocFailure).first().copied(),
        log: first::in_logs(&of(&|c| c.from == Source::Log)),
        kill: first::kill(&of(&|c| is_kill(c) && c.from != Source::Log)),
        object: of(&|c| matches!(c.from, Source::Event | Source::Status) && !is_kill(c)).first().copied(),
    }
}

/// The same shortage, met shortly before it ended the process: a bus error on a /dev/shm that was just said to be full.
fn first_sign<'a>(first: &Candidate, all: &'a [Candidate]) -> Option<&'a Candidate> {
    /// What is longer ago was another request's.
    const SHORTLY_MS: i64 = 60_000;
    let place = first
        .place
        .as_ref()
        .filter(|_| first.from == Source::Log && first.class == Class::HostAllocFailure)?;
    all.iter().find(|c| {
        let before = c.place.as_ref().is_some_and(|p| p.file == place.file && p.line < place.line);
        let apart = c.stamp.zip(first.stamp).and_then(|(c, f)| c.ms_until(f));
        c.weight == Weight::Degraded
            && c.class == first.class
            && c.from == Source::Log
            && before
            && apart.is_none_or(|ms| (0..=SHORTLY_MS).contains(&ms))
    })
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
    if out.iter().any(|c| c.class == Class::HostNodeOom && c.from == Source::Kernel) {
        out.retain(|c| c.class != Class::HostOomKilled || c.from == Source::Kernel);
    }
    *chain = out;
}
