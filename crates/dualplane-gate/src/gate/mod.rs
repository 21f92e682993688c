//! Whether a build may be released: a policy and reports in, checks with their numbers out.
//!
//! Absence is no pass: a number that the policy demands and no report holds is `not_shown`, and so is a difference that the
//! noise does not let one tell. Nothing passes that was not looked at.

mod absolute;
pub mod figure;
pub mod identity;
pub mod policy;
mod regression;
#[cfg(test)]
mod tests;

pub use figure::Figure;
pub use identity::{Differs, Field};
pub use policy::{POLICY_SCHEMA, Policy, TEMPLATE};

use dualplane_stats::compare::Difference;
use serde::Serialize;

use crate::document::{Measure, Run};

/// A report with the name of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// As it was given.
    pub file: String,
    /// What it holds.
    pub measure: Measure,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It holds.
    Pass,
    /// The policy asks for it, and this build has no such thing: VRAM without a card.
    NotApplicable,
    /// The number is missing, or the noise is too large to tell.
    NotShown,
    /// It does not hold.
    Fail,
}

/// One check.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Stable: `headroom.host`.
    pub id: String,
    /// What it found.
    pub outcome: Outcome,
    /// What was asked for: `at least 10 % of the limit stay free`.
    pub asked: String,
    /// What was found, or what is missing and how to get it.
    pub found: String,
    /// The numbers of a comparison.
    pub difference: Option<Difference>,
    /// The file that it was found in; the first one where it is of all.
    pub file: Option<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// Pass, not shown, or fail: the worst of the checks.
    pub outcome: Outcome,
    /// All checks, in the order of the policy.
    pub checks: Vec<Check>,
    /// What the candidate differs in from the baseline: what is released.
    pub released: Vec<Differs>,
    /// Why the baseline was not compared with; empty where it was or there is none.
    pub refused: Vec<Differs>,
    /// What was measured, in words.
    pub candidate: String,
    /// The baseline in words; none where there is none.
    pub baseline: Option<String>,
}

/// Why nothing can be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Files of one side are of different builds.
    #[error("{one} and {other} are of different builds: their {} differ; give the runs of one build", list(.fields))]
    Mixed {
        /// A file.
        one: String,
        /// Another one.
        other: String,
        /// In what.
        fields: Vec<Field>,
    },
    /// No report of the candidate.
    #[error("no report of the candidate was given")]
    NoCandidate,
}

fn list(fields: &[Field]) -> String {
    fields.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(", ")
}

/// Judges a candidate. The seed is for drawing windows again.
///
/// # Errors
/// Where there is no candidate, or the files of one side are of several builds.
pub fn judge(policy: &Policy, candidate: &[Named], baseline: &[Named], seed: u64) -> Result<Gate, GateError> {
    let first = candidate.first().ok_or(GateError::NoCandidate)?;
    one_build(candidate)?;
    one_build(baseline)?;
    let mut checks = absolute::checks(policy, candidate);
    let (mut released, mut refused) = (Vec::new(), Vec::new());
    if let Some(r) = &policy.regression {
        if let Some(base) = baseline.first() {
            let free = |d: &Differs| r.may_differ.contains(&d.field);
            (released, refused) =
                identity::differences(&base.measure, &first.measure).into_iter().partition(free);
        }
        checks.extend(regression::checks(policy, r, candidate, baseline, &refused, seed));
    }
    let worst = checks.iter().map(|c| c.outcome).max();
    // A policy that asks for nothing shows nothing.
    let outcome = worst.filter(|o| *o != Outcome::NotApplicable).unwrap_or(
        match checks.iter().any(|c| c.outcome == Outcome::Pass) {
            true => Outcome::Pass,
            false => Outcome::NotShown,
        },
    );
    Ok(Gate {
        outcome,
        checks,
        released,
        refused,
        candidate: words(candidate),
        baseline: (!baseline.is_empty()).then(|| words(baseline)),
    })
}

fn one_build(files: &[Named]) -> Result<(), GateError> {
    let Some(first) = files.first() else { return Ok(()) };
    for other in files {
        let differ = identity::differences(&first.measure, &other.measure);
        // Each file may hold another way to load it.
        let fields: Vec<Field> = differ.iter().map(|d| d.field).filter(|f| *f != Field::Load).collect();
        if !fields.is_empty() {
            return Err(GateError::Mixed { one: first.file.clone(), other: other.file.clone(), fields });
        }
    }
    Ok(())
}

fn words(files: &[Named]) -> String {
    let Some(m) = files.first().map(|f| &f.measure) else { return String::new() };
    let runs = files.iter().map(|f| f.measure.runs.len()).sum::<usize>();
    let s = &m.subject;
    let engine = match (&s.engine, &s.engine_version) {
        (Some(e), Some(v)) => format!("{e} {v}"),
        (Some(e), None) => e.clone(),
        _ => "an engine that is not named".to_owned(),
    };
    let model = s.model.as_ref().map(|m| format!(", {m}")).unwrap_or_default();
    let revision = s.model_revision.as_ref().map(|r| format!(" at {r}")).unwrap_or_default();
    let build = s.build.as_ref().map(|b| format!(", build {b}")).unwrap_or_default();
    let cards = Field::Gpus.of(m).filter(|g| g != "none").map(|g| format!(", on {g}")).unwrap_or_default();
    format!("{engine}{model}{revision}{build}{cards}: {}", dualplane_base::text::counted(runs as u64, "run"))
}

/// All runs with their files.
fn runs(files: &[Named]) -> impl Iterator<Item = (&Named, &Run)> {
    files.iter().flat_map(|f| f.measure.runs.iter().map(move |r| (f, r)))
}

/// The reports say that the server had no card.
fn without_cards(files: &[Named]) -> bool {
    files.iter().all(|f| f.measure.hardware.gpus.as_ref().is_some_and(Vec::is_empty))
}
