//! A recompute storm that prints nothing: only the counter and a full cache show it.

use super::{BEATS, Judged, Rule, Stage, degraded};
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const ID: &str = "preemption_counter";

pub(in crate::verdict) const RULE: Rule = Rule {
    id: ID,
    stage: Stage::Symptom,
    classes: &[Class::KvCacheCapacity],
    when: "a preemption counter increased while the KV cache was 95 % full",
    near_miss: "past preemptions with an empty cache; a full cache without preemptions",
    beats: BEATS,
    source: "vLLM and SGLang metrics: num_preemptions_total, num_retracted_reqs",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    degraded(case, |c| c.rule == ID)
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no preemption counter increased while the KV cache was full")
}
