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

mod about;
pub mod actions;
pub mod budget;
mod changes;
mod handover;
mod headline;
mod html;
pub mod json;
pub mod map;
mod markdown;
mod mask;
mod memory;
mod overview;
mod page;
pub mod pictures;
mod places;
pub mod planned;
pub mod rules;
pub mod runbook;
mod text;
pub mod words;

pub use dualplane_base::style::Style;
pub use handover::back as takes_back;
pub use html::html;
pub use markdown::markdown;
pub use mask::mask;
pub use overview::overview;
pub use text::text;

use crate::actions::Action;
use crate::budget::Budget;
use dualplane_base::order::Order as _;
use dualplane_core::evidence::{self, Bundle, Gap, RawFile};
use dualplane_core::facts::{self, Facts, NodeLogs};
use dualplane_core::knowledge::Knowledge;
use dualplane_core::verdict::{self, Verdict};
use dualplane_plan::Named;

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
    /// What the launch should take, and what it held.
    pub budget: Budget,
    /// Actions.
    pub actions: Vec<Action>,
}

/// Runs the whole line for the files of one incident; several pods that died in it give one report each.
#[must_use]
pub fn triage_all(name: &str, files: Vec<RawFile>, gaps: Vec<Gap>, knowledge: &Knowledge) -> Vec<Report> {
    triage_with(name, files, gaps, knowledge, None)
}

/// The same, with the files of the model that is served, which the evidence only names.
#[must_use]
pub fn triage_with(
    name: &str,
    files: Vec<RawFile>,
    gaps: Vec<Gap>,
    knowledge: &Knowledge,
    model: Option<&Named>,
) -> Vec<Report> {
    let pods = by_pod(name, files, gaps);
    // Of one pod alone there is nothing to share.
    let mut shared = (pods.len() > 1).then(NodeLogs::default);
    pods.into_iter().map(|(name, b)| judge_with(&name, b, knowledge, model, shared.as_mut())).collect()
}

/// The same for one of several pods: `shared` keeps what a node's kernel log says for the next pod of that node.
#[must_use]
pub fn triage_shared(
    name: &str,
    files: Vec<RawFile>,
    gaps: Vec<Gap>,
    knowledge: &Knowledge,
    model: Option<&Named>,
    shared: &mut NodeLogs,
) -> Vec<Report> {
    let pods = by_pod(name, files, gaps).into_iter();
    pods.map(|(name, b)| judge_with(&name, b, knowledge, model, Some(&mut *shared))).collect()
}

/// The evidence of each pod that died, by its name.
fn by_pod(name: &str, files: Vec<RawFile>, gaps: Vec<Gap>) -> Vec<(String, Bundle)> {
    let mut bundle = Bundle::from_files(files);
    bundle.gaps.extend(gaps);
    bundle.gaps.order();
    let named = |pod: Option<String>| pod.map_or_else(|| name.to_owned(), |p| format!("{name}: {p}"));
    evidence::by_pod(bundle).into_iter().map(|(pod, bundle)| (named(pod), bundle)).collect()
}

/// Runs the line for one bundle.
#[must_use]
pub fn judge(name: &str, bundle: Bundle, knowledge: &Knowledge) -> Report {
    judge_with(name, bundle, knowledge, None, None)
}

fn judge_with(
    name: &str,
    bundle: Bundle,
    knowledge: &Knowledge,
    model: Option<&Named>,
    shared: Option<&mut NodeLogs>,
) -> Report {
    let facts = match shared {
        Some(shared) => facts::extract_shared(&bundle, knowledge, shared),
        None => facts::extract(&bundle, knowledge),
    };
    let verdict = verdict::judge(&bundle, &facts, knowledge);
    let budget = budget::budget(&bundle, &facts, knowledge, &verdict, model);
    let actions = actions::advise(&bundle, &facts, knowledge, &verdict, &budget);
    let mut report = Report {
        name: name.to_owned(),
        files: bundle.files.clone(),
        bundle,
        facts,
        verdict,
        causes: Vec::new(),
        budget,
        actions,
    };
    places::to_file_lines(&mut report);
    report.causes = words::causes(&report.verdict);
    report
}
