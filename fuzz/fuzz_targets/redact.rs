//! Masking of secrets and prompts in quoted lines.
#![no_main]

use std::sync::OnceLock;

use dualplane_core::knowledge::Knowledge;
use dualplane_core::{redact, text};
use libfuzzer_sys::fuzz_target;

static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let k = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    let line = String::from_utf8_lossy(data);
    let _ = redact::line(&line, k);
    // A token stays masked whatever stands around it.
    let token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345";
    assert!(!redact::line(&format!("{line} token {token} "), k).contains(token));
    assert!(!text::printable(&line).chars().any(char::is_control));
    assert!(!text::markdown_escape(&line).contains(['<', '>']));
    let _ = text::strip_ansi(&line);
});
