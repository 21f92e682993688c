//! From two files to all outputs: nothing untrusted reaches a terminal or a page as more than text.
#![no_main]

use std::sync::OnceLock;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_report::{self as report, Style};
use libfuzzer_sys::fuzz_target;

static KNOWLEDGE: OnceLock<Knowledge> = OnceLock::new();

/// The text outside code fences, where Markdown would take `<` for HTML.
fn outside_fences(text: &str) -> String {
    let mut out = String::new();
    let mut fence: Option<String> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let ticks: String = bare.chars().take_while(|c| *c == '`').collect();
        match &fence {
            Some(open) if bare == *open => fence = None,
            None if ticks.len() >= 3 && bare == format!("{ticks}text") => fence = Some(ticks),
            None => {
                out.push_str(line);
                out.push('\n');
            }
            Some(_) => {}
        }
    }
    assert!(fence.is_none(), "a fence stays open");
    out
}

fuzz_target!(|data: &[u8]| {
    let k = KNOWLEDGE.get_or_init(|| Knowledge::embedded().unwrap());
    // The first NUL parts two files; its position gives the name of the second.
    let cut = data.iter().position(|b| *b == 0).unwrap_or(data.len());
    let (a, b) = data.split_at(cut);
    let second = ["pod.json", "kernel.log", "events.json", "metrics.prom"][cut % 4];
    let files = vec![
        RawFile::new("previous.log", a.to_vec()),
        RawFile::new(second, b.get(1..).unwrap_or_default().to_vec()),
    ];
    let reports = report::triage_all("fuzz", files, Vec::new(), k);
    for r in &reports {
        for verbose in [false, true] {
            let text = report::text(r, Style { colour: false, verbose, width: 100 });
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
        let markdown = report::markdown(r);
        assert!(!markdown.chars().any(|c| c.is_control() && c != '\n'));
        assert!(!outside_fences(&markdown).contains('<'), "{markdown}");
    }
    let json = report::json::render(&reports).unwrap();
    assert!(!json.chars().any(|c| c.is_control() && c != '\n'), "{json:?}");
});
