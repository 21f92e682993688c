//! `kubectl describe` of pods and nodes, out of any text.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::describe(&String::from_utf8_lossy(data));
});
