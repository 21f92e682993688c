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

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, file, holds, judged};

    fn metrics(preempted: u64, used: f64) -> [File; 1] {
        let text = format!(
            "vllm:num_preemptions_total{{model_name=\"m\"}} {preempted}\nvllm:kv_cache_usage_perc{{model_name=\"m\"}} {used}\n"
        );
        [file("m.prom", &text)]
    }

    #[test]
    fn preemptions_with_a_full_cache_are_a_storm() {
        holds(&RULE, &metrics(412, 0.99));
    }

    #[test]
    fn past_preemptions_and_a_full_cache_alone_are_none() {
        for files in [metrics(412, 0.1), metrics(0, 0.99)] {
            let v = judged(&files);
            assert_ne!(v.decided_by, RULE.id, "{:#?}", v.trace);
        }
    }
}
