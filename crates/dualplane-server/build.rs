//! Packs the recorded incidents of the demo into the program: names and bytes, no copy in the tree.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, out);
        } else if !matches!(name.as_str(), "truth.json" | "expected.txt") {
            out.push(path);
        }
    }
}

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let incidents = here.join("../../testdata/incidents").canonicalize().unwrap();
    println!("cargo::rerun-if-changed=demo.txt");
    let mut out = String::from("&[\n");
    for name in std::fs::read_to_string(here.join("demo.txt")).unwrap().lines().filter(|l| !l.is_empty()) {
        let dir = incidents.join(name);
        println!("cargo::rerun-if-changed={}", dir.display());
        let mut all = Vec::new();
        files(&dir, &mut all);
        writeln!(out, "({name:?}, &[").unwrap();
        for path in all {
            let inside = path.strip_prefix(&dir).unwrap().to_string_lossy().into_owned();
            writeln!(out, "({inside:?}, include_bytes!({path:?}).as_slice()),").unwrap();
        }
        out.push_str("]),\n");
    }
    out.push(']');
    let to = PathBuf::from(std::env::var_os("OUT_DIR").unwrap()).join("demo.rs");
    std::fs::write(to, out).unwrap();
}
