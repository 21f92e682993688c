//! The knowledge decides what the engines' sources can print: within bounds, from the harvests that are kept.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use dualplane_dev::{CoverageArgs, Tool, run};

fn harvests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/harvest")
}

/// Every template of memory or of a GPU's fault, and at least 95 % of those that end a process, in each engine and version.
#[test]
fn what_the_sources_print_is_decided() {
    let outcome = run(&Tool::Coverage(CoverageArgs {
        harvests: harvests(),
        name: Vec::new(),
        unknown: false,
        all: false,
        min_memory: 100.0,
        min_end: 95.0,
        min_fault: 100.0,
    }))
    .unwrap();
    assert!(outcome.good, "{}", outcome.text);
    assert!(outcome.text.lines().count() > 80, "harvests are missing:\n{}", outcome.text);
}
