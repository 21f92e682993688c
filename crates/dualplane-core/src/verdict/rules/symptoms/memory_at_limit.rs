//! The container's own memory stood at its limit when a SIGKILL came that nobody explains.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "memory_at_limit";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[Class::HostOomKilled],
    when: "container_memory_rss reached 95 % of the limit within two minutes before an unexplained \
    SIGKILL, and there is no kernel log",
    near_miss: "the same sample together with a kernel log without a record",
    beats: BEATS,
    source: "cAdvisor container_memory_rss; containerd and CRI-O can miss an OOM kill",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    degraded(case, |c| c.rule == ID)
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(
        case,
        pick(case),
        "no sample shows the container's memory at its limit shortly before a SIGKILL",
    )
}
