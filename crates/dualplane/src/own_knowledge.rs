//! `--knowledge DIR`: a team's own entries, read from TOML files as `knowledge/` holds them.

use std::fs;
use std::path::{Path, PathBuf};

use dualplane_core::knowledge::{Examples, HeadExamples, Knowledge, document};
use serde_json::{Map, Value};

use crate::commands::Failure;

/// A file of entries is a few hundred KiB; more is a mistake.
const MAX_FILE: u64 = 16 << 20;

/// The embedded knowledge, or the embedded one with a folder's entries.
pub(crate) fn load(dir: Option<&Path>) -> Result<Knowledge, Failure> {
    match dir {
        None => Ok(Knowledge::embedded()?),
        Some(dir) => Ok(read(dir)?.knowledge),
    }
}

/// A folder of a team's own entries.
pub(crate) struct Own {
    /// The embedded knowledge with them.
    pub(crate) knowledge: Knowledge,
    /// Examples of their signatures.
    pub(crate) examples: Vec<Examples>,
    /// Examples of their engines.
    pub(crate) heads: Vec<HeadExamples>,
}

/// Reads a folder.
pub(crate) fn read(dir: &Path) -> Result<Own, Failure> {
    let mut files = Vec::new();
    collect(dir, &mut files).map_err(|source| Failure::Unreadable { path: dir.into(), source })?;
    files.sort();
    let mut all = Map::new();
    let mut examples = Vec::new();
    let mut heads = Vec::new();
    for file in &files {
        let unreadable = |source| Failure::Unreadable { path: file.clone(), source };
        if fs::metadata(file).map_err(unreadable)?.len() > MAX_FILE {
            let why = format!("it is larger than {} MiB", MAX_FILE >> 20);
            return Err(Failure::OwnKnowledge { path: file.clone(), why });
        }
        let text = fs::read_to_string(file).map_err(unreadable)?;
        let doc: Value = toml::from_str(&text).map_err(|e| Failure::OwnKnowledge {
            path: file.clone(),
            why: e.to_string().trim_end().to_owned(),
        })?;
        let name = file.strip_prefix(dir).unwrap_or(file).with_extension("");
        if let Some(head) = dualplane_engines::head(&doc) {
            document::push(&mut all, "engine", head);
            heads.extend(dualplane_engines::examples(&doc));
        }
        examples.extend(document::add(&mut all, doc, &name.to_string_lossy().replace('\\', "/")));
    }
    let text = Value::Object(all).to_string();
    let knowledge = Knowledge::extended(&text)
        .map_err(|e| Failure::OwnKnowledge { path: dir.into(), why: e.to_string() })?;
    Ok(Own { knowledge, examples, heads })
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() && entry.path().extension().is_some_and(|e| e == "toml") {
            files.push(entry.path());
        }
    }
    Ok(())
}
