//! Any bytes under any of the usual names: recognising and parsing never panics.
#![no_main]

use dualplane_core::evidence::{Bundle, RawFile};
use libfuzzer_sys::fuzz_target;

const NAMES: &[&str] =
    &["x", "pod.json", "pod.yaml", "events.json", "kernel.log", "metrics.prom", "previous.log", "a.log.1"];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let name = NAMES[*first as usize % NAMES.len()];
    let _ = Bundle::from_files(vec![RawFile::new(name, rest.to_vec())]);
});
