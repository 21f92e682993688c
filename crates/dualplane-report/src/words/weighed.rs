//! Words for how a class was weighed that is not the verdict.

use dualplane_base::text::counted;
use dualplane_core::knowledge::Mark;
use dualplane_core::verdict::proof::Weighed;

use super::log;

pub(super) fn sentence(proof: &Weighed) -> String {
    match proof {
        Weighed::IsVerdict(class) => format!("{class} is the verdict"),
        Weighed::CameLater { first, what } => format!("it also happened, but {first} came first: {what}"),
        Weighed::DecidedBy(class) => format!("decided by: {}", class.decided_by()),
        Weighed::NoSignature { signatures, lines, logs } => format!(
            "none of its {} matches in {} of {}",
            counted(*signatures, "signature"),
            counted(*lines, "line"),
            counted(*logs, "log")
        ),
        Weighed::NotTheCause { signature, mark } => format!("{signature}: {}", not_the_cause(*mark)),
        // Of a rule of several classes, which decided for another one.
        Weighed::RuleHolds { rule, class } => format!("rule {rule} holds, and makes it {class}"),
        Weighed::RuleNotMet { rule, why } => format!("rule {rule} does not hold: {why}"),
        Weighed::RuleLost { rule, winner, because } => {
            let because = because.map(|b| format!(": {b}")).unwrap_or_default();
            format!("rule {rule} also holds, but {winner} takes precedence{because}")
        }
    }
}

/// Why a line of a class did not decide for it.
fn not_the_cause(mark: Mark) -> String {
    match mark {
        Mark::Suspect => log::sentence(&dualplane_core::verdict::proof::Log::Fallback),
        Mark::Degraded => {
            "the server continues after it, and the evidence shows a more severe error".to_owned()
        }
        _ => "another error comes first in causal order, or the numbers in the line indicate another class"
            .to_owned(),
    }
}
