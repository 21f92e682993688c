//! Findings in the forms that people and their tools read. Only strings; the caller writes them.

mod explain;
mod json;
mod junit;
mod platforms;
mod sarif;
mod text;

pub use explain::{explain, explain_json, table};
pub use json::json;
pub use junit::junit;
pub use platforms::{github, gitlab};
pub use sarif::sarif;
pub use text::text;

use std::collections::BTreeMap;

use crate::finding::{Finding, Severity};

/// A document that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Unread {
    /// File.
    pub file: String,
    /// Number of the document in it, from 1.
    pub document: u64,
    /// Line in the file, from 1.
    pub line: u64,
    /// Why, and what to do.
    pub why: String,
}

/// What was looked at and found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Findings, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// Documents that could not be looked at.
    pub unread: Vec<Unread>,
    /// More than are listed in `unread`.
    pub more_unread: u64,
    /// Files.
    pub files: u64,
    /// Objects that were looked at.
    pub objects: u64,
    /// Kinds of objects for which there is no rule, with how many.
    pub other_kinds: BTreeMap<String, u64>,
    /// Documents that are no objects: values, settings, notes.
    pub other_documents: u64,
    /// Findings that annotations, exceptions or the baseline hold back.
    pub suppressed: u64,
    /// Findings beyond those that are kept.
    pub more: u64,
    /// The worst severity of all findings, listed or not.
    pub worst: Option<Severity>,
    /// The objects are those of a cluster: where in it, in words. They have no lines.
    pub live: Option<String>,
    /// Remarks on the whole.
    pub notes: Vec<String>,
}

impl Report {
    /// Findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == severity).count()
    }
}
