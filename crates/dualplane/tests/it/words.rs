//! The language of what users read: phrases that have no place there, and tables that can be read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::harness::{root, run, stdout};

/// Turns that were found in reports and manuals. Each has a plain form: "found no …", "the engine continues",
/// "another process uses …", "1 citation".
const BANNED: &[&str] = &[
    "stands in the evidence",
    "stand in the evidence",
    "stands above",
    "stands elsewhere",
    "goes on with it",
    "goes on after",
    "nobody is killed",
    "lives on",
    "lived on",
    "code refines it",
    "all 1 citation",
    " 1 citations",
    "somebody",
    "whoever",
    "wait for ever",
    "without a word",
    "is told",
    "are told",
    "was told",
    "not told",
    "at hand",
    "could not be had",
    "fall-back",
    "got sigkill",
    "kill(s)",
    "file(s)",
    "log(s)",
];

/// A cell of a table in ARCHITECTURE.md that is longer than this should be prose.
const MAX_CELL: usize = 300;

pub(crate) fn found(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    BANNED.iter().find(|b| text.contains(&b.to_lowercase())).copied()
}

/// Lines of a text with a banned phrase; a phrase may be wrapped over two lines.
fn check(name: &str, text: &str, complaints: &mut String) {
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let both = format!("{line} {}", lines.get(i + 1).map_or("", |l| l.trim_start()));
        let phrase = found(line)
            .or_else(|| found(&both).filter(|_| lines.get(i + 1).is_some_and(|l| found(l).is_none())));
        if let Some(phrase) = phrase {
            let _ = writeln!(complaints, "{name}:{}: \"{phrase}\": {}", i + 1, line.trim());
        }
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(files(&path, suffix));
        } else if path.to_string_lossy().ends_with(suffix) {
            out.push(path);
        }
    }
    out.sort();
    out
}

/// Help of a command, and then of its subcommands.
pub(crate) fn helps(path: &[&str], out: &mut Vec<(String, String)>) {
    let mut args = path.to_vec();
    args.push("--help");
    let help = stdout(&run(&args));
    out.push((format!("dualplane {}", args.join(" ")), help.clone()));
    let commands =
        help.split_once("Commands:\n").map_or("", |(_, c)| c.split("\n\n").next().unwrap_or_default());
    for line in commands.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if line.starts_with("  ") && !line.starts_with("   ") && name != "help" {
            let mut below = path.to_vec();
            below.push(name);
            helps(&below, out);
        }
    }
}

fn no_complaints(complaints: &str) {
    assert!(complaints.is_empty(), "say it in plain English (see words.rs):\n{complaints}");
}

#[test]
fn help_is_in_plain_english() {
    let mut all = Vec::new();
    helps(&[], &mut all);
    assert!(all.len() >= 18, "{} commands", all.len());
    let mut complaints = String::new();
    for (name, help) in &all {
        check(name, help, &mut complaints);
    }
    no_complaints(&complaints);
}

#[test]
fn the_manual_is_in_plain_english() {
    let mut complaints = String::new();
    let pages = files(&root().join("docs"), ".md");
    assert!(pages.len() >= 12, "{} pages", pages.len());
    for page in [root().join("README.md"), root().join("ARCHITECTURE.md")].iter().chain(&pages) {
        check(&page.display().to_string(), &read(page), &mut complaints);
    }
    no_complaints(&complaints);
}

#[test]
fn reports_are_in_plain_english() {
    let mut complaints = String::new();
    let reports = files(&root().join("testdata/incidents"), "expected.txt");
    assert!(reports.len() >= 100, "{} reports", reports.len());
    for report in reports.iter().chain(&files(&root().join("testdata/golden"), ".txt")) {
        // What is quoted is the engine's or the kernel's own language.
        let text = read(report);
        let own: Vec<&str> =
            text.lines().map(|l| if l.trim_start().starts_with('>') { "" } else { l }).collect();
        check(&report.display().to_string(), &own.join("\n"), &mut complaints);
    }
    no_complaints(&complaints);
}

#[test]
fn meanings_are_in_plain_english() {
    let mut complaints = String::new();
    let mut seen = 0;
    for file in files(&root().join("knowledge"), ".toml") {
        for (i, line) in read(&file).lines().enumerate() {
            let text =
                ["meaning = ", "affects_text = ", "advice = "].iter().find_map(|k| line.strip_prefix(k));
            if let Some(text) = text {
                seen += 1;
                check(&format!("{}:{}", file.display(), i + 1), text, &mut complaints);
            }
        }
    }
    assert!(seen > 900, "{seen} texts");
    no_complaints(&complaints);
}

#[test]
fn tables_of_the_architecture_can_be_read() {
    let text = read(&root().join("ARCHITECTURE.md"));
    assert_eq!(long_cells(&text), Vec::<String>::new());
}

fn long_cells(text: &str) -> Vec<String> {
    let rows = text.lines().filter(|l| l.starts_with('|'));
    rows.flat_map(|l| l.split('|'))
        .map(str::trim)
        .filter(|c| c.chars().count() > MAX_CELL)
        .map(str::to_owned)
        .collect()
}

#[test]
fn phrases_and_long_cells_are_found() {
    assert_eq!(found("no error Stands\n  in the evidence"), Some("stands in the evidence"));
    assert_eq!(found("another process uses the GPU"), None);
    let mut complaints = String::new();
    check("page", "fine\nthis engine goes\non with it\n", &mut complaints);
    assert!(complaints.starts_with("page:2:"), "{complaints}");
    let cell = "x".repeat(MAX_CELL + 1);
    assert_eq!(long_cells(&format!("| a | {cell} |\n")), vec![cell]);
}
