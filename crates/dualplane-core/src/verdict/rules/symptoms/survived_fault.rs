//! A fault of the GPU that the server survived: it explains pressure in the cache, not the reverse.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::candidates::From;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "survived_fault";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[Class::XidHardware],
    when: "a line tells of a fault of the GPU after which the server went on",
    near_miss: "an Xid that only informs",
    beats: BEATS,
    source: "NVIDIA Xid catalogue; CUDA error texts",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    degraded(case, |c| c.class == Class::XidHardware && c.from != From::Metrics)
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no survived fault of the GPU stands in a log")
}
