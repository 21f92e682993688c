//! A fall-back that was followed by a failed answer or a death was none.

use super::{BEATS, Judged, Rule, Stage};
use crate::knowledge::Mark;
use crate::verdict::Class;
use crate::verdict::candidates::{Candidate, Source, Weight};
use crate::verdict::case::Case;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "fallback_failed",
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
        Class::XidHardware,
    ],
    when: "an error with a fallback is followed by a 5xx response or a process's death in the same log, \
    or only the kernel reports it and no server came up",
    near_miss: "\"retrying with a smaller buffer\", and the server comes up",
    beats: BEATS,
    source: "signatures with the mark suspect (knowledge/)",
    judge,
};

pub(super) fn pick(case: &Case<'_>) -> Option<usize> {
    case.candidates.iter().position(|c| c.weight == Weight::Suspect && failed_of_it(c, case))
}

fn failed_of_it(c: &Candidate, case: &Case<'_>) -> bool {
    let Some(place) = &c.place else { return false };
    let failed = case.facts.logs.iter().any(|l| l.file == place.file && l.last_5xx > place.line);
    let died = case.facts.hits.iter().any(|h| {
        matches!(h.mark, Mark::Death | Mark::Cascade)
            && h.place.file == place.file
            && h.place.line > place.line
    });
    failed || died || c.from == Source::Kernel && !went_on(c, case)
}

/// The kernel's refusal ended nothing: a server was up when it was printed or came up after it, and no end is known.
fn went_on(c: &Candidate, case: &Case<'_>) -> bool {
    let up = |l: &&crate::facts::LogSummary| {
        let later = l.last_served_at.or(l.last).zip(c.stamp).and_then(|(last, at)| at.ms_until(last));
        !l.kernel && l.last_ready.is_some() && later.is_none_or(|ms| ms >= 0)
    };
    case.death().is_none_or(crate::evidence::Termination::clean) && case.facts.logs.iter().find(up).is_some()
}

fn judge(case: &Case<'_>) -> Judged {
    super::judge(case, pick(case), "no error with a fallback was followed by a failure")
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, judged, kernel, log};

    /// ggml continues with pageable memory.
    fn pinned(then: &str) -> [File; 1] {
        let refused =
            "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory\n";
        let up = "main: server is listening on http://0.0.0.0:8080 - starting the main loop\n";
        [log(&format!("{refused}{up}{then}"))]
    }

    #[test]
    fn what_only_the_kernel_reports_has_no_fallback() {
        holds(
            &RULE,
            &[kernel(
                "[ 9250.310421] NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7\n",
            )],
        );
    }

    #[test]
    fn an_answer_that_failed_afterwards_proves_that_it_failed() {
        holds(
            &RULE,
            &pinned(
                "[GIN] 2025/05/02 - 09:10:11 | 500 |  1.204s |        10.0.0.7 | POST     \"/api/generate\"\n",
            ),
        );
    }

    #[test]
    fn a_server_that_came_up_and_answers_had_one() {
        let v = judged(&pinned(
            "[GIN] 2025/05/02 - 09:10:11 | 200 |  1.204s |        10.0.0.7 | POST     \"/api/generate\"\n",
        ));
        assert_ne!(v.decided_by, RULE.id, "{:#?}", v.trace);
    }
}
