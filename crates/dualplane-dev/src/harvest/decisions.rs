//! Decisions about templates that no signature knows, and shall not: each with its reason.

use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::DevError;

/// Why templates need no signature.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Any of these patterns, in any case, anywhere in the template.
    patterns: Vec<String>,
    /// None of these may stand in it.
    #[serde(default)]
    unless: Vec<String>,
    /// For these engines; for all, if it names none.
    #[serde(default)]
    engines: Vec<String>,
    /// Only for messages that come out so: `exit raise error warning`; for all, if it names none.
    #[serde(default)]
    severities: Vec<String>,
    /// Why they are no evidence, or are read elsewhere.
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    decision: Vec<Written>,
}

/// A decision, ready to be asked.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) file: String,
    patterns: Vec<Regex>,
    unless: Vec<Regex>,
    engines: Vec<String>,
    severities: Vec<String>,
    pub(super) reason: String,
}

impl Decision {
    pub(super) fn covers(&self, engine: &str, severity: &str, template: &str) -> bool {
        let named = |list: &[String], what: &str| list.is_empty() || list.iter().any(|l| l == what);
        named(&self.engines, engine)
            && named(&self.severities, severity)
            && self.patterns.iter().any(|p| p.is_match(template))
            && !self.unless.iter().any(|p| p.is_match(template))
    }
}

/// All decisions below a folder.
pub(super) fn all(folder: &Path) -> Result<Vec<Decision>, DevError> {
    let unreadable = |source| DevError::Unreadable { path: folder.into(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        files.push(entry.map_err(unreadable)?.path());
    }
    files.sort();
    let mut decisions = Vec::new();
    for path in files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let rejected = |why: String| DevError::Rejected { path: path.clone(), why };
        let document: Document = toml::from_str(&crate::read(&path)?).map_err(|e| rejected(e.to_string()))?;
        for written in document.decision {
            if written.reason.trim().is_empty() {
                return Err(rejected(format!("a decision without a reason: {:?}", written.patterns)));
            }
            let compile = |p: &String| {
                RegexBuilder::new(p).case_insensitive(true).build().map_err(|e| rejected(e.to_string()))
            };
            decisions.push(Decision {
                file: path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default(),
                patterns: written.patterns.iter().map(compile).collect::<Result<_, _>>()?,
                unless: written.unless.iter().map(compile).collect::<Result<_, _>>()?,
                engines: written.engines,
                severities: written.severities,
                reason: written.reason,
            });
        }
    }
    Ok(decisions)
}
