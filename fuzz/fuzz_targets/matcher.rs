//! Signatures on any log, line by line and as a whole log.
#![no_main]

use std::sync::OnceLock;

use dualplane_core::fuzzing;
use dualplane_core::knowledge::Knowledge;
use libfuzzer_sys::fuzz_target;

static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let k = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    let text = String::from_utf8_lossy(data);
    for line in text.lines().take(8) {
        for m in k.matches(line, |_| true) {
            assert!(m.at <= m.end && m.end <= line.len());
            assert!(k.signature(m.id).is_some());
        }
    }
    fuzzing::log(data, data.len() % 2 == 0, k);
});
