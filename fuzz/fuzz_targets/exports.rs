//! Exports of log stores.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::exports(&String::from_utf8_lossy(data));
});
