//! A memory error in the log with which the server went on.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::candidates::From;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "survived_error";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[
        Class::HostNodeOom,
        Class::HostAllocFailure,
        Class::CudaOomLoad,
        Class::CudaOomRuntime,
        Class::KvCacheCapacity,
        Class::Fragmentation,
        Class::GpuCapacityConflict,
        Class::MigSliceTooSmall,
    ],
    when: "a log line tells of a memory error or of pressure with which the server goes on, and nothing graver stands anywhere",
    near_miss: "a full KV cache beside a SIGKILL: an engine lives with it, and nobody kills it for that",
    beats: BEATS,
    source: "signatures with the mark degraded (knowledge/)",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    degraded(case, |c| c.from == From::Log)
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no log line tells of a memory error that the server survived")
}
