//! Tar, zip, gzip and Zstandard, inside one another.
#![no_main]

#[path = "../../crates/dualplane/src/target/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod target;

/// What the module asks of the binary.
mod commands {
    #[allow(dead_code)]
    #[derive(Debug)]
    pub(crate) enum Failure {
        Unreadable { path: std::path::PathBuf, source: std::io::Error },
        NotAFile { path: std::path::PathBuf, what: &'static str },
    }
}

use std::sync::OnceLock;

use dualplane_core::knowledge::Knowledge;
use libfuzzer_sys::fuzz_target;

static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let k = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    target::unpack(data, &target::Sieve::new(k));
});
