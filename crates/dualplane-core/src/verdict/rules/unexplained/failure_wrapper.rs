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
    when: "a line only reports a consequence (EngineDeadError, a failed core process), and nothing \
    reports the cause",
    near_miss: "messages of a graceful stop; a failed request after which the server answered others",
    beats: BEATS,
    source: "signatures with the mark cascade (knowledge/)",
    judge: |case: &Case<'_>| {
        let told = |h: &&Hit| h.mark == Mark::Cascade && speaks_of_failure(h) && !case.outlived(&h.place);
        let wrapper = case.facts.hits.iter().find(told);
        unknown_line(case, wrapper.ok_or_else(|| unmet("no line reports only a consequence"))?)
    },
};

/// Wrappers that only a failure prints, as opposed to messages of a graceful stop.
fn speaks_of_failure(hit: &Hit) -> bool {
    ["Error", "error", "failed", "died", "dead", "fatal", "crash", "Exception"]
        .iter()
        .any(|w| hit.text.contains(w))
}
