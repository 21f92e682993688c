//! Incidents of `testdata` for the tests of this folder.
// Each test is a program of its own and takes from here what it needs.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_report::{self as report, Report};

/// Larger incidents take most of the time and hold no other kinds of evidence.
const LARGEST: usize = 48 * 1024;

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

/// Those of at most 48 KiB.
pub(crate) fn small_incidents() -> Vec<(String, Vec<RawFile>)> {
    let mut all = incidents();
    all.retain(|(_, files)| files.iter().map(|f| f.bytes.len()).sum::<usize>() <= LARGEST);
    all
}

pub(crate) fn copies(files: &[RawFile]) -> Vec<RawFile> {
    files.iter().map(|f| RawFile::new(f.name.clone(), f.bytes.clone())).collect()
}

/// The reports of an incident's files.
pub(crate) fn triage(files: Vec<RawFile>) -> Vec<Report> {
    static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();
    let knowledge = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    report::triage_all("incident", files, Vec::new(), knowledge)
}
