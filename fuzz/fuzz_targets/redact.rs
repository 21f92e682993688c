//! Masking of secrets and prompts in lines, texts and JSON.
#![no_main]

use std::sync::OnceLock;

use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::{self, Redactor};
use dualplane_base::text;
use libfuzzer_sys::fuzz_target;

static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let k = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    let line = String::from_utf8_lossy(data);
    let _ = redact::line(&line, k);
    // A token stays masked whatever stands around it.
    let token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345";
    assert!(!redact::line(&format!("{line} token {token} "), k).contains(token));
    let (before, behind) = line.split_at(line.floor_char_boundary(line.len() / 2));
    let planted = format!("{before} {token} {behind}");
    let masked = Redactor::new(k).text(&planted).into_owned();
    assert!(!masked.contains(token));
    assert_eq!(masked.split('\n').count(), planted.split('\n').count());
    // In JSON as well: as a value, and in whatever document the bytes are.
    let mut value = serde_json::json!({"kind": "Event", "message": planted});
    Redactor::new(k).json(&mut value);
    assert!(!value.to_string().contains(token));
    if let Ok(mut value) = serde_json::from_slice(data) {
        Redactor::new(k).json(&mut value);
    }
    assert!(!text::printable(&line).chars().any(char::is_control));
    assert!(!text::markdown_escape(&line).contains(['<', '>']));
    let _ = text::strip_ansi(&line);
});
