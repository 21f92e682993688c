//! Tar, zip, gzip and Zstandard, inside one another.
#![no_main]

use std::sync::OnceLock;

use dualplane_core::knowledge::Knowledge;
use dualplane_input::{Sieve, unpack};
use libfuzzer_sys::fuzz_target;

static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let k = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    let _ = unpack(data, &Sieve::new(k));
});
