//! A line tells that a process died, and none says of what.

use super::{Beats, LIFE, NOTHING, Rule, Stage, unknown_line, unmet};
use crate::knowledge::Mark;
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "death_line",
    stage: Stage::Unexplained,
    classes: &[Class::Unknown],
    when: "a log line or a status reports that a process died, and none says why",
    near_miss: "the same line after a known failure that ended the process",
    beats: &[
        Beats::rule("failure_wrapper", "a process's death is closer to the cause than a wrapper's message"),
        LIFE,
        NOTHING,
    ],
    source: "signatures with the mark death (knowledge/)",
    judge: |case: &Case<'_>| {
        let of_objects = case.facts.object_hits.iter().filter(|h| case.of_subject(h));
        let died = case.facts.hits.iter().chain(of_objects).find(|h| h.mark == Mark::Death);
        unknown_line(case, died.ok_or_else(|| unmet("no line reports that a process died"))?)
    },
};
