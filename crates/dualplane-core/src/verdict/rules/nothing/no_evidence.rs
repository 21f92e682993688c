//! Neither a log nor an object is at hand.

use super::{Beats, Judged, Rule, Stage, decided, has_objects, unmet};
use crate::verdict::case::Case;
use crate::verdict::{Class, Confidence, Phase};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "no_evidence",
    stage: Stage::Nothing,
    classes: &[Class::Unknown],
    when: "there is no log, object or metric",
    near_miss: "a log of one line",
    beats: &[Beats::rule("nothing_failed", "without evidence, this is not a finding")],
    source: "own",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if case.facts.has_life() || has_objects(case) {
        return Err(unmet("there is a log, an object or a metric"));
    }
    let summary = "there is no evidence to judge";
    Ok(decided(Class::Unknown, Phase::Unknown, Confidence::Low, summary, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn nothing_is_no_finding() {
        holds(&RULE, &[]);
    }

    #[test]
    fn a_line_is_something() {
        near_miss(&RULE, "nothing_failed", &[log("INFO: Started server process [1]\n")]);
    }
}
