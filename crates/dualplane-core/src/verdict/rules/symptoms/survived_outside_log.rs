//! Memory pressure that only Kubernetes or the kernel tells of, and that ended nothing.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::candidates::From;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "survived_outside_log";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[Class::HostOomKilled, Class::HostNodeOom, Class::HostAllocFailure],
    when: "an event, a status or a kernel line tells of a shortage that ended nothing",
    near_miss: "an OOM kill of a child hours before an end that was asked for",
    beats: BEATS,
    source: "signatures with the mark degraded (knowledge/)",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    degraded(case, |c| matches!(c.from, From::Event | From::Status | From::Kernel | From::Cgroup))
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no event, status or kernel line tells of a shortage that ended nothing")
}
