//! An error with which the server went on.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::candidates::Source;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "survived_error";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[
        Class::HostOomKilled,
        Class::HostNodeOom,
        Class::HostAllocFailure,
        Class::CudaOomLoad,
        Class::CudaOomRuntime,
        Class::KvCacheCapacity,
        Class::Fragmentation,
        Class::GpuCapacityConflict,
        Class::MigSliceTooSmall,
        Class::XidHardware,
    ],
    when: "a line reports a memory error, a fault or memory pressure after which the server continues, \
    and there is no more severe error",
    near_miss: "a full KV cache with a SIGKILL: the engine continues; this does not cause a SIGKILL",
    beats: BEATS,
    source: "signatures with the mark degraded (knowledge/)",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    // A fault of the GPU explains pressure in its cache, not the reverse; a log says more than an object.
    degraded(case, |c| c.class == Class::XidHardware && c.from != Source::Metrics)
        .or_else(|| degraded(case, |c| c.from == Source::Log))
        .or_else(|| degraded(case, |c| c.from != Source::Metrics))
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no line reports an error that the server survived")
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod, preempted};

    #[test]
    fn a_full_cache_is_the_finding_where_nothing_is_worse() {
        holds(&RULE, &[preempted()]);
    }

    #[test]
    fn a_full_cache_does_not_kill() {
        near_miss(&RULE, "killed", &[preempted(), pod(137, "Error")]);
    }
}
