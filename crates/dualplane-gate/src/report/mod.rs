//! What the gate found, by format.

mod json;
mod junit;
mod markdown;
mod sarif;
mod text;

pub use json::{SCHEMA, json};
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::text;

use crate::gate::{Gate, Outcome};

/// The word of an outcome, as documents have it.
#[must_use]
pub const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::NotApplicable => "not_applicable",
        Outcome::NotShown => "not_shown",
        Outcome::Fail => "fail",
    }
}

/// The answer in a sentence without its end.
fn headline(g: &Gate) -> String {
    let count = |o: Outcome| g.checks.iter().filter(|c| c.outcome == o).count();
    let (fail, missing, pass) = (count(Outcome::Fail), count(Outcome::NotShown), count(Outcome::Pass));
    let checks = |n: usize| dualplane_base::text::counted(n as u64, "check");
    let not_shown =
        |n: usize| if n == 1 { "1 is not shown".to_owned() } else { format!("{n} are not shown") };
    match g.outcome {
        Outcome::Fail if missing > 0 => {
            format!("fails: {} of {} failed, {}", fail, checks(g.checks.len()), not_shown(missing))
        }
        Outcome::Fail => format!("fails: {} of {} failed", fail, checks(g.checks.len())),
        Outcome::NotShown if g.checks.is_empty() => "not shown: the policy asks for nothing".to_owned(),
        Outcome::NotShown => format!(
            "not shown: of {}, {}, and absence is no pass",
            checks(g.checks.len()),
            not_shown(missing)
        ),
        Outcome::Pass | Outcome::NotApplicable => format!("passes: {}", checks(pass)),
    }
}
