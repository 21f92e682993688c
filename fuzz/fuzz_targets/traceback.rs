//! Tracebacks of interleaved processes, and prompts over several lines.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::traceback(&String::from_utf8_lossy(data));
});
