//! Amounts of memory.
#![no_main]

use dualplane_core::facts::vram;
use dualplane_base::units;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let _ = units::parse_memory(&text, Some("GiB"));
    if let Some(bytes) = units::parse_memory(&text, None) {
        let _ = (bytes.to_string(), bytes.round_up_to(units::GIB), bytes.scale(1.1));
    }
    if let Some(bytes) = units::parse_k8s_memory(&text) {
        // A quantity is shown exactly, or rounded up to whole MiB; above 2^53 a float keeps fewer digits.
        let again = units::parse_k8s_memory(&bytes.k8s());
        assert!(bytes.0 > 1 << 52 || again.is_some_and(|a| a >= bytes && a.0 - bytes.0 < units::MIB));
        let shown = units::thousands(bytes.0).replace(',', "");
        assert_eq!(shown.parse(), Ok(bytes.0));
    }
    if let Some(oom) = vram::parse(&text) {
        let _ = (oom.others(), oom.own(), oom.reserved_unallocated());
    }
});
