//! Which files are read: those that are named, and manifests below folders.

use dualplane_base::order::Order as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::commands::Failure;

/// Files of a folder that are read, and folders below it.
const MAX_FILES: usize = 1_000_000;
const MAX_DEPTH: usize = 32;

/// Files, and remarks on folders that hold templates instead of manifests.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) files: Vec<PathBuf>,
    pub(super) notes: Vec<String>,
    /// Folders of charts, and whether they were named themselves.
    pub(super) charts: Vec<(PathBuf, bool)>,
}

pub(super) fn walk(paths: &[PathBuf]) -> Result<Walked, Failure> {
    let mut out = Walked::default();
    for path in paths {
        if path.as_os_str() == "-" {
            out.files.push(path.clone());
            continue;
        }
        let meta = fs::metadata(path).map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
        if meta.is_dir() { folder(path, 0, &mut out) } else { out.files.push(path.clone()) }
    }
    Ok(out)
}

/// Manifests of a folder in the order of their names. Links are not followed: a loop has no end.
fn folder(dir: &Path, depth: usize, out: &mut Walked) {
    let Ok(entries) = fs::read_dir(dir) else {
        out.notes.push(format!("{} cannot be read", dir.display()));
        return;
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.order_by_key(fs::DirEntry::file_name);
    let chart = entries.iter().any(|e| e.file_name() == "Chart.yaml");
    if chart {
        out.charts.push((dir.to_owned(), depth == 0));
    }
    for entry in entries {
        if out.files.len() >= MAX_FILES {
            return;
        }
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        match entry.file_type() {
            // A chart's own files are templates, values and notes; its other folders are charts or configuration.
            Ok(t) if t.is_dir() => {
                let skipped = name.starts_with('.') || name == "node_modules" || chart && name == "templates";
                if depth < MAX_DEPTH && !skipped {
                    folder(&entry.path(), depth + 1, out);
                }
            }
            Ok(t) if t.is_file() && !chart && is_manifest(&name) => out.files.push(entry.path()),
            _ => {}
        }
    }
}

/// By the end of a name in small letters.
fn is_manifest(name: &str) -> bool {
    [".yaml", ".yml", ".json", ".pbtxt"].iter().any(|e| name.ends_with(e))
}
