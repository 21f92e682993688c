//! Only a wrapper's words tell of a failure: what they wrap is not in the evidence.

use super::{BEATS, Rule, Stage, unknown_line, unmet};
use crate::facts::Hit;
use crate::knowledge::Mark;
use crate::verdict::Class;
use crate::verdict::case::Case;

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "failure_wrapper",
    stage: Stage::Unexplained,
    classes: &[Class::Unknown],
    when: "a line only notices a failure (EngineDeadError, a failed core process), and nothing else does",
    near_miss: "notices of an orderly stop",
    beats: BEATS,
    source: "signatures with the mark cascade (knowledge/)",
    judge: |case: &Case<'_>| {
        let wrapper = case.facts.hits.iter().find(|h| h.mark == Mark::Cascade && speaks_of_failure(h));
        unknown_line(case, wrapper.ok_or_else(|| unmet("no line only notices a failure"))?)
    },
};

/// Wrappers that only a failure prints, as opposed to notices of an orderly stop.
fn speaks_of_failure(hit: &Hit) -> bool {
    ["Error", "error", "failed", "died", "dead", "fatal", "crash", "Exception"]
        .iter()
        .any(|w| hit.text.contains(w))
}
