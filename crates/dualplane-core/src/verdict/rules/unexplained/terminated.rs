//! Exit code 143 is a SIGTERM: somebody asked the container to stop.

use super::{Beats, Judged, LIFE, NOTHING, Rule, Stage, decided, end};
use crate::verdict::case::Case;
use crate::verdict::proof::Signal;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "terminated",
    stage: Stage::Unexplained,
    classes: &[Class::NotMemory],
    when: "the exit code is 143 (128 + SIGTERM)",
    near_miss: "137: SIGKILL may come from the OOM killer",
    beats: &[
        Beats::rule("death_line", "the exit code says how it ended"),
        Beats::rule("failure_wrapper", "the exit code says how it ended"),
        LIFE,
        NOTHING,
    ],
    source: "signal(7); the OOM killer sends SIGKILL only",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    end(case, 143, "the exit code is not 143 (SIGTERM)")?;
    let supports = vec![Cited::at(Signal::Terminated, &case.pod_place())];
    let summary = "the container was asked to stop (SIGTERM)";
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, supports))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod};

    #[test]
    fn sigterm_is_a_request() {
        holds(&RULE, &[pod(143, "Error")]);
    }

    #[test]
    fn sigkill_is_not() {
        near_miss(&RULE, "killed", &[pod(137, "Error")]);
    }
}
