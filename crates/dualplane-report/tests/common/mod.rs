//! Incidents of `testdata` for the tests of this folder.

use std::path::{Path, PathBuf};

use dualplane_core::evidence::RawFile;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of a folder and those below it, without the label and the kept report.
pub(crate) fn files(dir: &Path) -> Vec<RawFile> {
    fn walk(root: &Path, dir: &Path, out: &mut Vec<RawFile>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                walk(root, &path, out);
            } else if !matches!(name.as_str(), "truth.json" | "expected.txt") {
                out.push(RawFile::new(name, std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut out = Vec::new();
    walk(dir, dir, &mut out);
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

/// All incidents, by name, with their files.
pub(crate) fn incidents() -> Vec<(String, Vec<RawFile>)> {
    let mut out: Vec<(String, Vec<RawFile>)> = std::fs::read_dir(root().join("testdata/incidents"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .map(|dir| (dir.file_name().unwrap().to_string_lossy().into_owned(), files(&dir)))
        .collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}
