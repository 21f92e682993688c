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

use dualplane_base::text::counted;

use crate::finding::{Finding, Severity};

/// Containers without a known engine that are named.
const SHOWN: usize = 5;

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
    /// All findings by severity, listed or not.
    pub all: BTreeMap<Severity, u64>,
    /// Containers that ask for a GPU and are no server that is known; no rule looked at them.
    pub not_known: Vec<String>,
    /// More than are listed in `not_known`.
    pub more_not_known: u64,
    /// The worst severity of all findings, listed or not.
    pub worst: Option<Severity>,
    /// The objects are those of a cluster: where in it, in words. They have no lines.
    pub live: Option<String>,
    /// Remarks on the whole.
    pub notes: Vec<String>,
}

impl Report {
    /// What was passed over, and remarks on the whole, in sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut out = self.notes.clone();
        let n = self.not_known.len() as u64 + self.more_not_known;
        if n > 0 {
            let shown: Vec<&str> = self.not_known.iter().take(SHOWN).map(String::as_str).collect();
            let rest = n.saturating_sub(SHOWN as u64);
            let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
            let ask = if n == 1 { "asks for a GPU and runs" } else { "ask for a GPU and run" };
            out.push(format!(
                "{} {ask} no engine that is known by its image or command, and no rule looked there: {}{rest}",
                counted(n, "container"),
                shown.join("; ")
            ));
        }
        out
    }

    /// Findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == severity).count()
    }
}
