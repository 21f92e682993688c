//! A SIGKILL that nobody explains: exit code 137 alone proves nothing.

use super::{Beats, Judged, LIFE, NOTHING, Rule, Stage, end, unknown_end};
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "killed",
    stage: Stage::Unexplained,
    classes: &[Class::Unknown],
    when: "the exit code is 137 (128 + SIGKILL), and neither OOMKilled nor a kernel message nor an event \
    names the sender",
    near_miss: "137 with the reason OOMKilled",
    beats: &[
        Beats::rule("death_line", "the exit code says how it ended"),
        Beats::rule("failure_wrapper", "the exit code says how it ended"),
        Beats::rule("restart_loop", "it is known how the container ended"),
        LIFE,
        NOTHING,
    ],
    source: "signal(7)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let d = end(case, 137, "the exit code is not 137 (SIGKILL)")?;
    let summary =
        "exit code 137 means SIGKILL; without OOMKilled, a kernel message or an event, the sender is unknown";
    unknown_end(case, d, summary.to_owned())
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod};

    #[test]
    fn a_sigkill_alone_proves_nothing() {
        holds(&RULE, &[pod(137, "Error")]);
    }

    #[test]
    fn oom_killed_does() {
        near_miss(&RULE, "oom_killed_status", &[pod(137, "OOMKilled")]);
    }
}
