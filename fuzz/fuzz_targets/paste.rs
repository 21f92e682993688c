//! Several kinds in one text: prompts, fences, objects between lines.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::paste(data);
});
