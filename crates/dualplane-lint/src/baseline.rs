//! Findings that were there before: they are counted and not told, so that only new ones fail.

use std::collections::BTreeSet;

use dualplane_base::schema::{Id, id};
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// The schema of the file.
const SCHEMA: &str = "dualplane.lint-baseline/v1";

/// Findings by what stays the same when lines move.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Baseline {
    schema: String,
    findings: BTreeSet<String>,
}

impl Baseline {
    /// These findings.
    #[must_use]
    pub fn of(findings: &[Finding]) -> Self {
        let one = |f: &Finding| format!("{} {} {}", f.fingerprint(), f.rule, f.subject());
        Self { schema: SCHEMA.to_owned(), findings: findings.iter().map(one).collect() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What it is instead, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(text).map_err(|e| format!("it is no baseline: {e}"))?;
        match id(&read.schema) {
            Some(Id::Known(s)) if s.name == "lint-baseline" => Ok(read),
            Some(other) => Err(other.to_string()),
            None => Err(format!("it is `{}`, not {SCHEMA}", read.schema)),
        }
    }

    /// Whether a finding was there.
    #[must_use]
    pub fn holds(&self, f: &Finding) -> bool {
        let print = f.fingerprint();
        self.findings.range(print.clone()..).next().is_some_and(|first| first.starts_with(&print))
    }
}
