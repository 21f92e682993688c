//! The answer as JUnit's XML: a case for each check.

use dualplane_base::junit::{Case, Outcome as Result, junit as suite};
use jiff::Timestamp;

use super::word;
use crate::gate::{Check, Gate, Outcome};

/// The answer as XML.
#[must_use]
pub fn junit(g: &Gate, at: Timestamp) -> String {
    let class = || "dualplane gate".to_owned();
    let mut cases: Vec<Case> =
        g.checks.iter().map(|c| Case { name: c.id.clone(), class: class(), outcome: result(c) }).collect();
    if cases.is_empty() {
        let (kind, message) = ("not_shown".to_owned(), "the policy asks for nothing".to_owned());
        let outcome = Result::Failure { kind, message, body: String::new() };
        cases.push(Case { name: "policy".to_owned(), class: class(), outcome });
    }
    let passed = g.checks.iter().filter(|c| c.outcome == Outcome::Pass);
    let passed: Vec<String> = passed.map(|c| format!("{}: {}", c.id, c.found)).collect();
    suite("dualplane gate", at, &cases, &passed)
}

fn result(c: &Check) -> Result {
    match c.outcome {
        // What is not shown fails too: a tool that reads failures only must not take it for a pass.
        Outcome::Fail | Outcome::NotShown => Result::Failure {
            kind: word(c.outcome).to_owned(),
            message: c.found.clone(),
            body: format!("asked: {}", c.asked),
        },
        Outcome::NotApplicable => Result::Skipped { message: c.found.clone() },
        Outcome::Pass => Result::Pass,
    }
}
