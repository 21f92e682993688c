//! A kill of a child earlier in the container's life makes an end from outside less sure.

use super::Weighing;
use crate::evidence::Termination;
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::rules::{Stage, outside, rule};
use crate::verdict::{Cited, Confidence, Decided};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "earlier_kill",
    adds: "at most medium confidence if an external end has the reason OOMKilled",
    because: "the runtime's counter may reflect the kill of a child hours ago, and the end may still be a \
    consequence",
    source: "containerd, CRI-O: reason OOMKilled from the cgroup's counter",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let outside = rule(decided.by).is_some_and(|r| r.stage == Stage::Outside);
    // What the runtime says of a failed start is of that very instance.
    let started = decided.by != outside::runtime_could_not_start::RULE.id;
    if outside && started && case.death().is_some_and(Termination::oom_killed) {
        decided.confidence = Confidence::Medium;
        decided.against.push(Cited::at(Status::EarlierOomKill, &case.pod_place()));
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{adds_nothing, event, pod, weighs};

    const STOPPED: &str = "Stopping container vllm";

    #[test]
    fn a_child_s_kill_makes_a_stop_less_sure() {
        weighs(&RULE, &[pod(143, "OOMKilled"), event("Killing", STOPPED)]);
    }

    #[test]
    fn a_stop_alone_is_sure() {
        adds_nothing(&RULE, "container_stopped", &[pod(143, "Error"), event("Killing", STOPPED)]);
    }
}
