//! The whole line from two files to all outputs.
#![no_main]

use std::sync::OnceLock;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::report::{self, Style};
use libfuzzer_sys::fuzz_target;

static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let k = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    // The first NUL parts two files.
    let cut = data.iter().position(|b| *b == 0).unwrap_or(data.len());
    let (a, b) = data.split_at(cut);
    let files = vec![
        RawFile::new("previous.log", a.to_vec()),
        RawFile::new("pod.json", b.get(1..).unwrap_or_default().to_vec()),
    ];
    let reports = report::triage_all("fuzz", files, Vec::new(), k);
    let style = Style { colour: false, verbose: true, width: 100 };
    for r in &reports {
        let text = report::text(r, style);
        assert!(!text.contains('\u{1b}'));
        let _ = report::markdown(r);
    }
    let _ = report::json::render(&reports).unwrap();
});
