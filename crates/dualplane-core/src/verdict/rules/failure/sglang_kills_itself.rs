//! SGLang answers an exception of its scheduler with a SIGKILL of its own process tree.

use super::{BEATS, Rule, Stage, traceback, unmet};
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "sglang_kills_itself",
    stage: Stage::Failure,
    classes: &[Class::NotMemory],
    when: "the engine is SGLang, the container ended with SIGKILL, and a traceback ends in an exception \
    that matches no signature",
    near_miss: "the same traceback from an engine that does not kill its own processes",
    beats: BEATS,
    source: "SGLang srt/utils: kill_process_tree, called by the scheduler's parent on SIGQUIT",
    judge: |case: &Case<'_>| {
        if case.exit_code() != Some(137) {
            return Err(unmet("the container did not end with SIGKILL"));
        }
        if !case.facts.engine.head().is_some_and(|d| d.kills_itself) {
            return Err(unmet("the engine does not kill its own process tree"));
        }
        traceback::exception(case)
    },
};

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, image, log, near_miss};

    const TRACE: &str = "Traceback (most recent call last):\n  File \"/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py\", line 3, in run_scheduler_process\n    scheduler.event_loop_overlap()\nZeroDivisionError: division by zero\n";

    #[test]
    fn sglang_sends_the_sigkill_itself() {
        holds(&RULE, &[image(137, "lmsysorg/sglang:v0.5.4"), log(TRACE)]);
    }

    #[test]
    fn another_engine_does_not() {
        let trace = TRACE.replace("sglang", "engine").replace("sgl-workspace", "app");
        near_miss(&RULE, "killed", &[image(137, "vllm/vllm-openai:v0.11.0"), log(&trace)]);
    }
}
