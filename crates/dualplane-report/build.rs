//! Embeds the pages of `docs/runbooks/`, packed: few runs print one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// The bans of clippy.toml keep the crate pure; its build script reads files and talks to cargo by nature.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "../dualplane-base/packer.rs"]
mod packer;

/// Stands between two pages, as `runbook.rs` knows.
const BETWEEN: char = '\u{1e}';

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../docs/runbooks");
    println!("cargo:rerun-if-changed={}", root.display());
    let entries = fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("readable entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "md") && !f.ends_with("README.md"));
    files.sort();
    let pages: Vec<String> = files
        .iter()
        .map(|file| {
            println!("cargo:rerun-if-changed={}", file.display());
            let page = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            assert!(!page.contains(BETWEEN), "{}: a control character", file.display());
            page
        })
        .collect();
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let pages = packer::block(&out, "runbooks", &pages.join(&BETWEEN.to_string()));
    fs::write(out.join("runbooks.rs"), pages).expect("OUT_DIR is writable");
}
