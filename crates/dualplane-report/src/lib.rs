//! What is told: **verdict → actions → report**, and maps of who runs where.
//!
//! - [`actions`] computes exact changes from the numbers in the evidence;
//! - [`planned`] reads launches in the evidence as `dualplane_plan` takes them;
//! - [`map`] assembles who runs where;
//! - [`words`] puts citations into sentences;
//! - the rest renders: the versioned JSON structures and the texts people read, as strings.
//!
//! Internal types are not serialized: the structures of [`json`] are `dualplane.verdict/v2` and change only by a new version.
//! Like the core, nothing here does I/O or reads a clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod actions;
mod changes;
pub mod json;
pub mod map;
mod markdown;
mod mask;
mod memory;
mod overview;
mod page;
mod places;
pub mod planned;
pub mod rules;
mod text;
pub mod words;

pub use dualplane_base::style::Style;
pub use markdown::markdown;
pub use mask::mask;
pub use overview::overview;
pub use text::text;

use crate::actions::Action;
use dualplane_core::evidence::{self, Bundle, Gap, RawFile};
use dualplane_core::facts::{self, Facts};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::{self, Verdict};

/// One incident from files to actions.
#[derive(Debug)]
pub struct Report {
    /// Name of the incident: the directory or file it came from, or the pod.
    pub name: String,
    /// Files used, sorted.
    pub files: Vec<String>,
    /// What was read.
    pub bundle: Bundle,
    /// Facts.
    pub facts: Facts,
    /// Verdict.
    pub verdict: Verdict,
    /// Its causes in words.
    pub causes: Vec<words::Cause>,
    /// Actions.
    pub actions: Vec<Action>,
}

/// Runs the whole line for the files of one incident; several pods that died in it give one report each.
#[must_use]
pub fn triage_all(name: &str, files: Vec<RawFile>, gaps: Vec<Gap>, knowledge: &Knowledge) -> Vec<Report> {
    let mut bundle = Bundle::from_files(files);
    bundle.gaps.extend(gaps);
    bundle.gaps.sort();
    evidence::by_pod(bundle)
        .into_iter()
        .map(|(pod, bundle)| {
            let name = pod.map_or_else(|| name.to_owned(), |p| format!("{name}: {p}"));
            judge(&name, bundle, knowledge)
        })
        .collect()
}

/// Runs the line for one bundle.
#[must_use]
pub fn judge(name: &str, bundle: Bundle, knowledge: &Knowledge) -> Report {
    let facts = facts::extract(&bundle, knowledge);
    let verdict = verdict::judge(&bundle, &facts, knowledge);
    let actions = actions::advise(&bundle, &facts, knowledge, &verdict);
    let mut report = Report {
        name: name.to_owned(),
        files: bundle.files.clone(),
        bundle,
        facts,
        verdict,
        causes: Vec::new(),
        actions,
    };
    places::to_file_lines(&mut report);
    report.causes = words::causes(&report.verdict);
    report
}
