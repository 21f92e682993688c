//! An error with which the server went on.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::candidates::From;
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
    when: "a line tells of a memory error, a fault or pressure with which the server goes on, and nothing graver stands anywhere",
    near_miss: "a full KV cache beside a SIGKILL: an engine lives with it, and nobody kills it for that",
    beats: BEATS,
    source: "signatures with the mark degraded (knowledge/)",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    // A fault of the GPU explains pressure in its cache, not the reverse; a log says more than an object.
    degraded(case, |c| c.class == Class::XidHardware && c.from != From::Metrics)
        .or_else(|| degraded(case, |c| c.from == From::Log))
        .or_else(|| degraded(case, |c| c.from != From::Metrics))
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no line tells of an error that the server survived")
}
