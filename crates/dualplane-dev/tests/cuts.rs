//! Evidence that is taken away makes no failure healthy and moves none to the other plane.
//!
//! Seeded: a failure is the same on every machine. `dualplane dev cuts DIR --draws 100` measures the same at length.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use dualplane_dev::{CutsArgs, Tool, run};

fn incidents(below_root: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below_root)
}

#[track_caller]
fn holds(dir: PathBuf, draws: u32) {
    let outcome = run(&Tool::Cuts(CutsArgs::of(dir, draws))).unwrap();
    assert!(outcome.good, "{}", outcome.text);
}

#[test]
fn cuts_of_our_own_incidents_are_no_all_clear() {
    holds(incidents("testdata/incidents"), 4);
}

/// Where the other corpus lies beside the repository.
#[test]
fn cuts_of_the_shared_corpus_are_no_all_clear() {
    let shared = incidents("../shared/corpus/incidents");
    if shared.is_dir() {
        holds(shared, 8);
    }
}
