//! What a rule found: which object, where in it, what is wrong and what to change.

use dualplane_base::hash::fnv1a;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Advice that the manifest alone cannot prove.
    Note,
    /// It costs memory, time or replicas under some condition that is usual.
    Warning,
    /// It fails, or nothing keeps it from failing.
    Error,
}

impl Severity {
    /// Stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Where an object stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Source {
    /// File as it was named; `-` for standard input.
    pub file: String,
    /// Number of the document in it, from 1.
    pub document: u64,
    /// Its first line in the file, from 1.
    pub line: u64,
}

/// A value to set, by a JSON pointer into the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// Where.
    pub pointer: String,
    /// What.
    pub value: Value,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// Severity.
    pub severity: Severity,
    /// Where the object stands.
    #[serde(flatten)]
    pub source: Source,
    /// Line of what is wrong, from 1; that of the document where the text does not tell.
    pub at: u64,
    /// Kind of the object.
    pub kind: String,
    /// Namespace, where it names one.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Container, volume or service that it is about.
    pub part: String,
    /// Pointer to what is wrong.
    pub pointer: String,
    /// What is wrong, with its numbers.
    pub message: String,
    /// What to change, with computed values.
    pub fix: String,
    /// The fix as values, where it is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

impl Finding {
    /// The object as people name it: `Deployment serving/llm, container server`.
    #[must_use]
    pub fn subject(&self) -> String {
        let name = if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        };
        let part = if self.part.is_empty() { String::new() } else { format!(", {}", self.part) };
        format!("{} {name}{part}", self.kind)
    }

    /// What stays the same when lines move: for baselines and for code reviews that compare runs.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let text = format!(
            "{}\n{}\n{}\n{}\n{}\n{}",
            self.rule, self.kind, self.namespace, self.name, self.part, self.pointer
        );
        // Stable between versions, and no secret depends on it.
        format!("{:016x}", fnv1a(text.bytes()))
    }
}
