//! Whole reports, kept beside their evidence: a change of any word is seen in review.
//! `EXPECTORATE=overwrite cargo test -p dualplane --test it golden` rewrites them; read the difference before you commit it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use dualplane_base::style::Style;
use dualplane_core::evidence::metrics;
use dualplane_report::map::{Asked, Exporter, Input, assemble};
use serde_json::Value;

use crate::harness::{dualplane, incidents_dir, root, run, stderr, stdout};
use crate::pages::pages;

/// A report and the file that keeps it.
struct Golden {
    file: PathBuf,
    report: String,
}

/// Compares all, so that one run shows every difference.
fn compare(all: Vec<Golden>) {
    assert!(!all.is_empty());
    let differs: Vec<String> = all
        .into_iter()
        .filter(|g| {
            // A missing file is an empty one: the difference shows the whole report.
            catch_unwind(AssertUnwindSafe(|| expectorate::assert_contents(&g.file, &g.report))).is_err()
        })
        .map(|g| g.file.display().to_string())
        .collect();
    assert!(
        differs.is_empty(),
        "{} report(s) changed; if that is wanted: EXPECTORATE=overwrite cargo test -p dualplane --test it golden\n{}",
        differs.len(),
        differs.join("\n")
    );
}

fn golden_dir() -> PathBuf {
    root().join("testdata/golden")
}

/// In two halves: a test runs on one thread.
fn incidents(half: usize) {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(incidents_dir())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .collect();
    folders.sort();
    let report = |folder: PathBuf| {
        let o = run(&["triage", "-v", folder.to_str().unwrap()]);
        assert!(o.stderr.is_empty(), "{}: {}", folder.display(), stderr(&o));
        Golden { file: folder.join("expected.txt"), report: stdout(&o) }
    };
    compare(folders.into_iter().skip(half).step_by(2).map(report).collect());
}

#[test]
fn incidents_of_even_places() {
    incidents(0);
}

#[test]
fn incidents_of_odd_places() {
    incidents(1);
}

/// Plans, fits and preflights: `commands.toml` names them.
#[test]
fn commands() {
    let dir = golden_dir();
    let text = std::fs::read_to_string(dir.join("commands.toml")).unwrap();
    let groups: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(&text).unwrap();
    let mut all = Vec::new();
    let mut kept = 0;
    for (group, commands) in &groups {
        let folder = dir.join(group);
        kept += std::fs::read_dir(&folder).unwrap().count();
        for (name, command) in commands {
            let o = dualplane().args(command.split_whitespace()).current_dir(&dir).output().unwrap();
            let file = folder.join(format!("{name}.txt"));
            all.push(Golden { file, report: without_this_machine(&format!("{}{}", stdout(&o), stderr(&o))) });
        }
    }
    let named = all.len();
    compare(all);
    assert_eq!(kept, named, "a kept output without its command in commands.toml");
}

/// How large and how full `/dev/shm` is where the test runs.
fn without_this_machine(report: &str) -> String {
    let line = |l: &str| {
        if l.starts_with("  /dev/shm ") { "  /dev/shm  (of the machine)".into() } else { l.to_owned() }
    };
    report.lines().map(|l| line(l) + "\n").collect()
}

/// Maps, from what a cluster answered.
#[test]
fn maps() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(golden_dir().join("map")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let inputs = files.iter().filter(|p| p.extension().is_some_and(|e| e == "json"));
    compare(inputs.map(|p| Golden { file: p.with_extension("txt"), report: map(p) }).collect());
}

fn map(file: &Path) -> String {
    let v: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let list = |key: &str| v[key].as_array().cloned().unwrap_or_default();
    let (samples, _) = metrics::parse(v["dcgm"].as_str().unwrap(), "dcgm");
    let exporters =
        if samples.is_empty() { Vec::new() } else { vec![Exporter { node: "h100-07".into(), samples }] };
    let input = Input {
        pods: list("pods"),
        neighbours: list("neighbours"),
        nodes: list("nodes"),
        exporters,
        ..Input::default()
    };
    let word = |key: &str| v["asked"][key].as_str().map(str::to_owned);
    let asked = word("pods").map(Asked::Pods).or_else(|| word("node").map(Asked::Node));
    let asked = asked.or_else(|| word("gpu").map(Asked::Gpu)).unwrap();
    match assemble(&input, &asked) {
        Ok(map) => dualplane_report::map::report::text(&map, Style { width: 100, ..Style::default() }, true),
        Err(several) => format!("{several:#?}\n"),
    }
}

/// The comparison itself can fail.
#[test]
fn a_changed_word_is_noticed() {
    let dir = crate::harness::dir(&[("a.txt", b"found no memory error\n")]);
    let golden = |report: &str| vec![Golden { file: dir.path().join("a.txt"), report: report.into() }];
    compare(golden("found no memory error\n"));
    if std::env::var_os("EXPECTORATE").is_none() {
        assert!(catch_unwind(AssertUnwindSafe(|| compare(golden("found one memory error\n")))).is_err());
    }
}

/// Pages show real output: below a command as many lines of it as stand there, from the line that begins alike.
#[test]
fn consoles_of_the_docs() {
    let mut all = Vec::new();
    let mut ran = 0;
    for file in pages() {
        let doc = std::fs::read_to_string(&file).unwrap();
        if doc.contains("\n$ dualplane ") {
            let report = with_output(&doc, &mut ran);
            all.push(Golden { file, report });
        }
    }
    compare(all);
    assert!(ran >= 28, "only {ran} commands");
}

/// The page with what its commands print now. They run in the checkout.
fn with_output(doc: &str, ran: &mut usize) -> String {
    let mut page = String::new();
    let mut lines = doc.lines();
    while let Some(line) = lines.next() {
        page.push_str(line);
        page.push('\n');
        let Some(command) = line.strip_prefix("$ dualplane ") else { continue };
        let shown: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        let first = shown.first().copied().unwrap_or_default();
        let word = first.split_whitespace().next().unwrap_or_default();
        let begins = &first[..first.len() - first.trim_start().len() + word.len()];
        let o = dualplane().args(command.split_whitespace()).current_dir(root()).output().unwrap();
        assert!(o.stderr.is_empty(), "{command}: {}", stderr(&o));
        let text = stdout(&o);
        let at = text.lines().position(|l| l.starts_with(begins)).unwrap_or(0);
        for l in text.lines().skip(at).take(shown.len()) {
            page.push_str(l);
            page.push('\n');
        }
        page.push_str("```\n");
        *ran += 1;
    }
    page
}
