//! Exit code 139 is a SIGSEGV: a native crash.

use super::{Beats, Judged, LIFE, NOTHING, Rule, Stage, decided, end};
use crate::verdict::case::Case;
use crate::verdict::proof::Signal;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "segfault",
    stage: Stage::Unexplained,
    classes: &[Class::NotMemory],
    when: "the exit code is 139 (128 + SIGSEGV)",
    near_miss: "135: SIGBUS means a page that could not be backed",
    beats: &[
        Beats::rule("death_line", "the exit code says how it ended"),
        Beats::rule("failure_wrapper", "the exit code says how it ended"),
        LIFE,
        NOTHING,
    ],
    source: "signal(7)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    end(case, 139, "the exit code is not 139 (SIGSEGV)")?;
    let supports = vec![Cited::at(Signal::Segfault, &case.pod_place())];
    let summary = "the process crashed (SIGSEGV)";
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::Medium, summary, supports))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod};

    #[test]
    fn sigsegv_is_a_crash() {
        holds(&RULE, &[pod(139, "Error")]);
    }

    #[test]
    fn sigbus_is_not() {
        near_miss(&RULE, "bus_error", &[pod(135, "Error")]);
    }
}
