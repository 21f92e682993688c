//! Labelled incidents: a folder each, with its evidence and its `truth.json`.

use std::fs;
use std::path::{Path, PathBuf};

use dualplane_base::{Class, Phase, Plane};
use dualplane_core::knowledge::Knowledge;
use dualplane_input::{self as input, Incident, Sieve};
use serde::Deserialize;

use super::DevError;

/// The label of one incident.
#[derive(Debug, Deserialize)]
pub(crate) struct Truth {
    pub(crate) class: Class,
    pub(crate) plane: Plane,
    #[serde(default)]
    pub(crate) phase: Option<Phase>,
    #[serde(default)]
    pub(crate) trigger_line: Option<String>,
    #[serde(default)]
    pub(crate) trigger_file: Option<String>,
}

/// An incident with its label.
pub(crate) struct Labelled {
    pub(crate) name: String,
    pub(crate) truth: Truth,
    pub(crate) incident: Incident,
}

/// A class of memory or hardware, as opposed to "not memory" and "unknown".
pub(crate) fn is_failure(class: Class) -> bool {
    !matches!(class, Class::NotMemory | Class::Unknown)
}

/// All incidents below a folder that have a label, by name.
pub(crate) fn read(dir: &Path, knowledge: &Knowledge) -> Result<Vec<Labelled>, DevError> {
    let mut out = Vec::new();
    for (name, dir) in folders(dir)? {
        let Ok(label) = fs::read_to_string(dir.join("truth.json")) else { continue };
        // One that was judged from several incidents is measured by each of them.
        for incident in input::read(std::slice::from_ref(&dir), &Sieve::new(knowledge))? {
            out.push(Labelled { name: name.clone(), truth: serde_json::from_str(&label)?, incident });
        }
    }
    if out.is_empty() {
        return Err(DevError::NoLabels(dir.into()));
    }
    Ok(out)
}

fn folders(dir: &Path) -> Result<Vec<(String, PathBuf)>, DevError> {
    let unreadable = |source| DevError::Unreadable { path: dir.into(), source };
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.path().is_dir() {
            out.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    out.sort();
    Ok(out)
}
