//! Single lines through every line reader.
#![no_main]

use dualplane_core::evidence::framing;
use dualplane_core::facts::vram;
use dualplane_core::{text, time, units};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let line = String::from_utf8_lossy(data);
    let _ = framing::unwrap_line(&line);
    let _ = framing::unwrap_kernel(&line);
    let _ = framing::process_of(&line);
    if let Some(stamp) = time::find_stamp(&line) {
        let _ = stamp.with_year(Some(2026)).show();
    }
    if let Some(oom) = vram::parse(&line) {
        let _ = (oom.others(), oom.reserved_unallocated());
    }
    let _ = units::parse_memory(&line, Some("GiB"));
    let _ = units::parse_k8s_memory(&line);
    let shown = text::printable(&line);
    assert!(!shown.chars().any(char::is_control));
    let _ = text::strip_ansi(&line);
    let _ = text::markdown_escape(&line);
});
