//! Errors with which the server went on, where nothing fatal stands: in the order of the table, the gravest first.

pub(in crate::verdict) mod fallback_failed;
pub(in crate::verdict) mod memory_at_limit;
pub(in crate::verdict) mod preemption_counter;
pub(in crate::verdict) mod survived_error;
pub(in crate::verdict) mod xid_gauge;

use super::{Beats, Judged, Rule, Stage, from_chain, unmet};
use crate::verdict::Class;
use crate::verdict::candidates::{Candidate, Weight};
use crate::verdict::case::Case;

const BEATS: &[Beats] = &[
    Beats::stage(Stage::Failure, "a proven memory shortage takes precedence over errors around it"),
    Beats::stage(Stage::Unexplained, "the shortage is the best known explanation of the end"),
    Beats::stage(Stage::Pressure, "memory was short already, and the server went on"),
    Beats::stage(Stage::Life, "the server went on, and something was short"),
    Beats::stage(Stage::Nothing, "something was short"),
];

/// What a rule takes for its symptom, as a place among the candidates.
type Pick = fn(&Case<'_>) -> Option<usize>;

/// The pick of each rule of this stage, in the order of the table.
const PICKS: &[(&str, Pick)] = &[
    (xid_gauge::RULE.id, xid_gauge::pick),
    (survived_error::RULE.id, survived_error::pick),
    (preemption_counter::RULE.id, preemption_counter::pick),
    (memory_at_limit::RULE.id, memory_at_limit::pick),
    (fallback_failed::RULE.id, fallback_failed::pick),
];

/// The gravest symptom, whether or not an engine lives with it.
pub(in crate::verdict) fn first<'c>(case: &'c Case<'_>) -> Option<&'c Candidate> {
    PICKS.iter().find_map(|(_, pick)| case.candidates.get(pick(case)?))
}

/// A full KV cache makes requests wait or be put back; no SIGKILL comes of it.
pub(in crate::verdict) fn lives_with_it(symptom: &Candidate, case: &Case<'_>) -> bool {
    symptom.class == Class::KvCacheCapacity
        && symptom.weight == Weight::Degraded
        && case.exit_code() == Some(137)
}

/// The first degraded candidate of this kind.
fn degraded(case: &Case<'_>, of: impl Fn(&Candidate) -> bool) -> Option<usize> {
    case.candidates.iter().position(|c| c.weight == Weight::Degraded && of(c))
}

/// Holds with what the rule picks, unless an engine lives with it.
fn judge(case: &Case<'_>, picked: Option<usize>, absent: &'static str) -> Judged {
    let symptom = picked.and_then(|i| case.candidates.get(i)).ok_or_else(|| unmet(absent))?;
    if lives_with_it(symptom, case) {
        return Err(unmet("the engine continues with a full KV cache; this does not cause a SIGKILL"));
    }
    // The server went on answering, and something else ended it later.
    if symptom.survived && case.death().is_some_and(|d| !d.clean()) {
        return Err(unmet(
            "the server survived the error and served on; the container ended later, for another reason",
        ));
    }
    Ok(from_chain(symptom, &[]))
}

#[cfg(test)]
mod tests {
    use super::{PICKS, Stage};
    use crate::verdict::rules::TABLE;

    /// The table alone is the precedence.
    #[test]
    fn symptoms_are_picked_in_the_order_of_the_table() {
        let table: Vec<&str> = TABLE.iter().filter(|r| r.stage == Stage::Symptom).map(|r| r.id).collect();
        assert_eq!(PICKS.iter().map(|(id, _)| *id).collect::<Vec<_>>(), table);
    }
}
