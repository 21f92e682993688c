//! Pressure that the engine lived with is told as a step beside another verdict.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::rules::{Stage, rule, symptoms};
use crate::verdict::{Decided, Step};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "lived_with_pressure",
    adds: "a step for a full KV cache together with a SIGKILL",
    because: "the engine continues with a full cache and this does not cause a SIGKILL, but it happened",
    source: "vLLM, SGLang: preemption and retraction",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let late = rule(decided.by).is_some_and(|r| r.stage >= Stage::Symptom);
    let lived = case.symptom().filter(|c| late && symptoms::lives_with_it(c, case));
    if let Some(c) = lived {
        let what = c.what.trim_end_matches('.');
        let what = format!("{what}: the engine continues; this does not cause a SIGKILL");
        decided.sequence.push(Step {
            class: c.class,
            phase: c.phase,
            what,
            trigger: c.trigger(),
            follows: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{adds_nothing, pod, preempted, weighs};

    #[test]
    fn a_full_cache_before_a_sigkill_is_a_step() {
        weighs(&RULE, &[pod(137, "Error"), preempted()]);
    }

    #[test]
    fn without_one_it_is_the_finding_itself() {
        adds_nothing(&RULE, "survived_error", &[preempted()]);
    }
}
