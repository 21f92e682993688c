//! Answers of the Prometheus HTTP API.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        fuzzing::series(text);
    }
});
