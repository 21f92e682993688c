//! What the files of a cgroup say for or against a verdict of the host plane.

use super::Weighing;
use crate::evidence::host_model::Cgroup;
use crate::verdict::case::Case;
use crate::verdict::memory::{Whose, whose};
use crate::verdict::proof::{self, NoKill, Proof};
use crate::verdict::{Cited, Class, Confidence, Decided, Plane};
use dualplane_base::order::Order as _;

/// A peak of this share of the limit touched it: the counter is a high-water mark in whole pages.
const REACHED: f64 = 0.99;
/// Below this share the limit was not reached; between the two nothing is said.
const CLEAR_OF_LIMIT: f64 = 0.9;
/// A statistic of less than this share of the limit was read after the memory was given back.
const STILL_FULL: f64 = 0.5;
/// Cgroups that are told of.
const TOLD: usize = 4;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "cgroup_memory",
    adds: "peak, kills and memory breakdown of the pod's cgroups; at most medium confidence if the dead \
    instance's cgroup counts no kill",
    because: "the kernel's own counters, without a timestamp",
    source: "Linux Documentation/admin-guide/cgroup-v2.rst: memory.peak, memory.events, memory.stat",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Host {
        return;
    }
    let (bundle, subject) = (case.bundle, &case.subject);
    let mut near: Vec<(Whose, &Cgroup)> =
        bundle.cgroups.iter().map(|c| (whose(c, bundle, subject), c)).collect();
    near.retain(|(w, _)| !matches!(w, Whose::Other | Whose::Running));
    near.order_by_key(|(w, _)| *w);
    for (whose, c) in near.into_iter().take(TOLD) {
        cgroup(decided, c, whose);
    }
}

fn cgroup(decided: &mut Decided, c: &Cgroup, whose: Whose) {
    let limit = c.limit.as_ref().map(|l| l.bytes).filter(|l| l.0 > 0);
    if let Some((peak, limit)) = c.peak.as_ref().zip(limit) {
        let share = peak.bytes.share_of(limit);
        let proof = proof::Cgroup::Peak { peak: peak.bytes, limit };
        if share >= REACHED {
            decided.supports.push(Cited::at(proof, &peak.place));
        } else if share < CLEAR_OF_LIMIT && whose == Whose::Dead && decided.class == Class::HostOomKilled {
            decided.against.push(Cited::at(proof, &peak.place));
        }
    }
    let told = |decided: &Decided, place| decided.supports.iter().any(|s| s.place.as_ref() == Some(place));
    if let Some(k) = c.oom_kill.as_ref().filter(|k| k.count > 0 && !told(decided, &k.place)) {
        decided.supports.push(Cited::at(proof::Cgroup::Kills(k.count), &k.place));
    }
    if let Some(k) = c.oom_kill.as_ref().filter(|k| k.count == 0 && whose == Whose::Dead) {
        decided.against.push(Cited::at(proof::Cgroup::NoKill(NoKill::Dead), &k.place));
        decided.confidence = decided.confidence.min(Confidence::Medium);
    }
    split(decided, c);
}

/// Anonymous memory, page cache and tmpfs, where they were read while the memory was still held.
fn split(decided: &mut Decided, c: &Cgroup) {
    // The kernel's own statistics at the kill go before a sample of seconds before.
    let told = |s: &Cited| matches!(s.proof, Proof::Cgroup(proof::Cgroup::Breakdown { .. }));
    if decided.supports.iter().any(told) {
        return;
    }
    let Some((anon, file)) = c.anon.as_ref().zip(c.file_pages.as_ref()) else { return };
    let whole = c.limit.as_ref().or(c.peak.as_ref()).map(|r| r.bytes);
    let sum = anon.bytes.saturating_add(file.bytes);
    if whole.is_none_or(|w| sum.share_of(w) < STILL_FULL) {
        return;
    }
    let shmem = c.shmem.as_ref().map(|s| s.bytes).unwrap_or_default();
    let proof = proof::Cgroup::breakdown(anon.bytes, shmem, file.bytes);
    decided.supports.push(Cited::at(proof, &anon.place));
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, pod, weighs};

    const LIMIT: &str = "68719476736\n";

    fn cgroup(peak: &'static str) -> [File; 3] {
        [pod(137, "OOMKilled"), file("cgroup/memory.max", LIMIT), file("cgroup/memory.peak", peak)]
    }

    #[test]
    fn a_peak_at_the_limit_supports_the_kill() {
        weighs(&RULE, &cgroup("68719476736\n"));
    }

    #[test]
    fn a_peak_of_an_unknown_instance_near_the_limit_says_nothing() {
        adds_nothing(&RULE, "oom_killed_status", &cgroup("65283502899\n"));
    }
}
