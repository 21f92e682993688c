//! The page for a browser: well-formed, complete, and nothing in it runs, whatever the evidence holds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod common;

use common::{small_incidents, triage};
use dualplane_core::evidence::RawFile;
use dualplane_core::verdict::timeline::{Measure, Timeline, timeline};
use dualplane_report::html;
use proptest::prelude::*;

/// Elements that a page may have; none of them runs or loads anything.
const ELEMENTS: &[&str] = &[
    "!doctype",
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "nav",
    "ol",
    "ul",
    "li",
    "a",
    "span",
    "article",
    "p",
    "pre",
    "code",
    "b",
    "br",
    "dl",
    "dt",
    "dd",
    "details",
    "summary",
    "footer",
    "figure",
    "figcaption",
    "svg",
    "line",
    "path",
    "rect",
    "circle",
    "text",
    "i",
    "div",
    "table",
    "tr",
    "th",
    "td",
];
const VOID: &[&str] = &["!doctype", "meta", "br"];

/// The page's elements nest, and each is one of those above with attributes that do not run.
fn well_formed(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').ok_or("an element without an end")?;
        let element = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if let Some(name) = element.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> in {open:?}"));
            }
            continue;
        }
        let own_end = element.ends_with('/');
        let name = element.trim_end_matches('/').split(' ').next().unwrap_or_default();
        if !ELEMENTS.contains(&name) {
            return Err(format!("<{element}>"));
        }
        if element.split(' ').skip(1).any(|a| a.starts_with("on") || a.starts_with("src=")) {
            return Err(format!("<{element}> runs or loads"));
        }
        let link = element.split_once("href=\"").map_or("#", |(_, link)| link);
        if !link.starts_with("https://github.com/") && !link.starts_with('#') {
            return Err(format!("<{element}> leads elsewhere"));
        }
        if !own_end && !VOID.contains(&name) {
            open.push(name);
        }
        // What stands in it is no markup.
        if name == "style" {
            rest = &rest[rest.find("</style>").ok_or("an endless style")?..];
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("open: {open:?}")) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[test]
fn each_incident_has_a_page_with_all_its_commands() {
    let (mut commands, mut series) = (0, 0);
    // Kept for whoever wants to look at them.
    let pages = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&pages).unwrap();
    for (name, files) in small_incidents() {
        let reports = triage(files);
        let page = html(&reports);
        std::fs::write(pages.join(format!("{name}.html")), &page).unwrap();
        well_formed(&page).unwrap_or_else(|e| panic!("{name}: {e}"));
        for r in &reports {
            assert!(page.contains(r.verdict.class.as_str()), "{name}");
            for c in r.actions.iter().flat_map(|a| &a.commands).filter(|c| !c.contains('\n')) {
                assert!(page.contains(&escaped(c)), "{name}: {c}");
                commands += 1;
            }
        }
        series += usize::from(page.contains("<svg"));
    }
    assert!(commands > 500 && series >= 5, "{commands} commands, {series} pages with pictures");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// A log, a name of a card or of a pod may hold anything.
    #[test]
    fn what_the_evidence_says_is_text(
        evil in r#"[<>"'&/a-z =\\x1b\u{202e}-]{1,40}"#,
        known in prop::sample::select(vec!["<script>alert(1)</script>", "</pre><img src=x onerror=alert(1)>", "\" onload=\"x", "</title>", "<!--", "]]>", "&lt;"]),
    ) {
        let evil = format!("{known}{evil}");
        let label = evil.replace('\\', "\\\\").replace('"', "\\\"");
        let log = format!("INFO {evil}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB {evil}\n");
        let used = format!("DCGM_FI_DEV_FB_USED{{gpu=\"{label}\"}} 79800 1795169100000\nDCGM_FI_DEV_FB_FREE{{gpu=\"{label}\"}} 11 1795169100000\n");
        let files = vec![RawFile::new("previous.log", log.into_bytes()), RawFile::new(evil.replace('/', "_"), used.into_bytes())];
        let page = html(&triage(files));
        prop_assert!(well_formed(&page).is_ok(), "{:?}", well_formed(&page));
        let raw = page.contains(['\u{1b}', '\u{202e}']);
        prop_assert!(!raw);
    }
}

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"llm-0","namespace":"serve"},"spec":{"containers":[{"name":"vllm","image":"vllm/vllm-openai:v0.9.1","resources":{"limits":{"memory":"64Gi"}}}]},"status":{"containerStatuses":[{"name":"vllm","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-11-20T10:05:00Z"}}}]}}"#;
/// Its end.
const END: i64 = 1_795_169_100_000;

fn drawn(samples: &str) -> Timeline {
    let reports = triage(vec![
        RawFile::new("pod.json", POD.as_bytes().to_vec()),
        RawFile::new("m.prom", samples.as_bytes().to_vec()),
    ]);
    let r = reports.into_iter().next().unwrap();
    timeline(&r.bundle, &r.facts, &r.verdict)
}

fn sample(pod: &str, at: i64, value: u64) -> String {
    format!(
        "container_memory_working_set_bytes{{namespace=\"serve\",pod=\"{pod}\",container=\"vllm\"}} {value} {at}\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// In any order, beside any neighbour, of any length: the same lines, bounded, with their highest value.
    #[test]
    fn the_subject_s_samples_alone_in_order_of_time(
        values in prop::collection::btree_map(1_000i64..1_800_000, 1u64..1 << 40, 1..2_000),
        strange in prop::collection::vec((1_000i64..1_800_000, 1u64..1 << 40), 0..20),
    ) {
        let own: Vec<String> = values.iter().map(|(ago, v)| sample("llm-0", END - ago, *v)).collect();
        let mut mixed: Vec<String> = strange.iter().map(|(ago, v)| sample("llm-00", END - ago, *v)).collect();
        let plain = drawn(&own.concat());
        mixed.extend(own.into_iter().rev());
        prop_assert_eq!(&drawn(&mixed.concat()), &plain);
        let line = plain.lines.iter().find(|l| l.measure == Measure::WorkingSet).unwrap();
        prop_assert!(line.points.len() <= 900 && line.points.is_sorted_by_key(|p| p.0));
        let most = *values.values().max().unwrap() as f64;
        prop_assert!(line.points.iter().any(|(_, v)| *v == most));
    }
}
