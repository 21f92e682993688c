//! Wrappings and prefixes of lines: CRI, Docker, journald, kernel, compose, stern, kubetail, kubectl, logcli.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::unwrap(data, false);
    fuzzing::unwrap(data, true);
});
