//! An exit code of the program's own choice, and no line that says why.

use super::{Beats, Judged, LIFE, NOTHING, Rule, Stage, unknown_end, unmet};
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "exit_code",
    stage: Stage::Unexplained,
    classes: &[Class::Unknown],
    when: "the container ended badly, with an exit code other than 137, 139 or 143 or with one that the evidence lacks, \
    and no line says why",
    near_miss: "exit code 0",
    beats: &[
        Beats::rule("death_line", "the exit code says how it ended"),
        Beats::rule("failure_wrapper", "the exit code says how it ended"),
        Beats::rule("restart_loop", "it is known how the container ended"),
        LIFE,
        NOTHING,
    ],
    source: "wait(2)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let d = case
        .death()
        .filter(|d| !d.clean() && !matches!(d.exit_code, Some(137 | 139 | 143)))
        .ok_or_else(|| unmet("no container ended with such an exit code"))?;
    let how = match (d.exit_code, d.reason.as_str()) {
        (Some(code), _) => format!("the container ended with exit code {code}"),
        (None, "") => "the container ended".to_owned(),
        (None, reason) => format!("the container ended with reason {reason}"),
    };
    let summary = format!("{how}, and the evidence does not show why");
    unknown_end(case, d, summary)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, near_miss, pod};

    #[test]
    fn a_code_without_a_line_is_unknown() {
        holds(&RULE, &[pod(1, "Error")]);
    }

    #[test]
    fn a_clean_end_is_none() {
        near_miss(&RULE, "end_not_shown", &[pod(0, "Completed")]);
    }
}
