//! A kill of a child earlier in the container's life makes an end from outside less sure.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::rules::{Stage, outside, rule};
use crate::verdict::{Cited, Confidence, Death, Decided};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "earlier_kill",
    adds: "doubt, and at most medium confidence, where an end from outside bears the reason OOMKilled",
    because: "the runtime's counter remembers a child's kill of hours ago, and the end may still be of it",
    source: "containerd, CRI-O: reason OOMKilled from the cgroup's counter",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let outside = rule(decided.by).is_some_and(|r| r.stage == Stage::Outside);
    // What the runtime says of a failed start is of that very instance.
    let started = decided.by != outside::runtime_could_not_start::RULE.id;
    if outside && started && case.death().is_some_and(Death::oom_killed) {
        decided.confidence = Confidence::Medium;
        decided.against.push(Cited::at(
            "reason OOMKilled: some process of the container was OOM-killed earlier in its life; the kernel log tells which and when",
            &case.pod_place(),
        ));
    }
}
