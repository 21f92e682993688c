//! Records of the kernel's OOM killer.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::ooms(&String::from_utf8_lossy(data));
});
