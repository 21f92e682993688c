//! Printouts of nvidia-smi, amd-smi, dcgmi, free, meminfo, cgroup files, kubectl top, torch, out of any text.
#![no_main]

use dualplane_core::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fuzzing::printouts(&String::from_utf8_lossy(data));
    fuzzing::wrapped(data);
});
