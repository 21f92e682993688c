//! `--knowledge DIR`: a team's own entries, read from TOML files as `knowledge/` holds them.

use std::fs;
use std::path::{Path, PathBuf};

use dualplane_core::knowledge::{Examples, Knowledge};
use serde_json::{Map, Value, json};

use crate::commands::Failure;

/// A file of entries is a few hundred KiB; more is a mistake.
const MAX_FILE: u64 = 16 << 20;

/// The embedded knowledge, or the embedded one with a folder's entries.
pub(crate) fn load(dir: Option<&Path>) -> Result<Knowledge, Failure> {
    match dir {
        None => Ok(Knowledge::embedded()?),
        Some(dir) => Ok(read(dir)?.0),
    }
}

/// Reads a folder: the extended knowledge, and the examples of its entries.
pub(crate) fn read(dir: &Path) -> Result<(Knowledge, Vec<Examples>), Failure> {
    let mut files = Vec::new();
    collect(dir, &mut files).map_err(|source| Failure::Unreadable { path: dir.into(), source })?;
    files.sort();
    let mut all = Map::new();
    let mut examples = Vec::new();
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
        merge(&mut all, doc, &name.to_string_lossy().replace('\\', "/"), &mut examples);
    }
    let text = Value::Object(all).to_string();
    let knowledge = Knowledge::extended(&text)
        .map_err(|e| Failure::OwnKnowledge { path: dir.into(), why: e.to_string() })?;
    Ok((knowledge, examples))
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

fn merge(all: &mut Map<String, Value>, doc: Value, file: &str, examples: &mut Vec<Examples>) {
    let Value::Object(doc) = doc else { return };
    let engine = doc.get("engine").cloned().unwrap_or(Value::Null);
    for (key, value) in doc {
        let Value::Array(entries) = value else { continue };
        for mut entry in entries {
            if let Some(table) = entry.as_object_mut() {
                let hits = strings(table.remove("examples"));
                let misses = strings(table.remove("near_misses"));
                if key == "signature" {
                    table.insert("engine".into(), engine.clone());
                    table.insert("file".into(), file.into());
                    let id = table.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    examples.push(Examples { id, hits, misses });
                }
            }
            if let Value::Array(into) = all.entry(key.clone()).or_insert_with(|| json!([])) {
                into.push(entry);
            }
        }
    }
}

fn strings(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::Array(a)) => a.into_iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}
