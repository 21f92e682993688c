//! House rules as a test: module docs, file sizes, the dependency rule, a pure core.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::root;

/// Aim at 80 to 250 lines; ask why at 400; more than this needs a reason here.
const MAX_LINES: usize = 600;

/// Crates without I/O, clock and environment.
const PURE: &[&str] = &[
    "dualplane-admission",
    "dualplane-alerts",
    "dualplane-base",
    "dualplane-core",
    "dualplane-dashboards",
    "dualplane-engines",
    "dualplane-gate",
    "dualplane-grams",
    "dualplane-incidents",
    "dualplane-lint",
    "dualplane-notify",
    "dualplane-pages",
    "dualplane-plan",
    "dualplane-rehearse",
    "dualplane-report",
    "dualplane-profile",
    "dualplane-resources",
    "dualplane-runs",
    "dualplane-shape",
    "dualplane-stats",
    "dualplane-tune",
];

/// What these may link besides each other: all of it pure.
const PURE_MAY_USE: &[&str] = &[
    "aho-corasick",
    "cel",
    "jiff",
    "maud",
    "memchr",
    // Unpacks what a build script packed.
    "miniz_oxide",
    "percent-encoding",
    "regex",
    "regex-automata",
    "serde",
    "serde-saphyr",
    "serde_json",
    "strsim",
    "thiserror",
    // Derives a description of types, behind a feature.
    "utoipa",
];

pub(crate) fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for e in std::fs::read_dir(dir).unwrap() {
        let p = e.unwrap().path();
        if p.is_dir() && !p.ends_with("target") {
            rust_files(&p, out);
        } else if p.extension().is_some_and(|e| e == "rs") {
            out.push(p);
        }
    }
}

#[test]
fn every_file_says_what_it_is_for_and_stays_small() {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    assert!(files.len() > 30);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{}: no module docs", file.display());
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{}: {lines} lines; is it one idea?", file.display());
    }
}

#[test]
fn crates_use_lower_layers_only_and_the_core_stays_pure() {
    let o = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let meta: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
    let layer = |name: &str| match name {
        "dualplane-base" | "dualplane-client" | "dualplane-grams" | "dualplane-shape" | "dualplane-stats"
        | "dualplane-wire" => 0,
        "dualplane-admission"
        | "dualplane-alerts"
        | "dualplane-engines"
        | "dualplane-gate"
        | "dualplane-incidents"
        | "dualplane-profile" => 1,
        "dualplane-core"
        | "dualplane-dashboards"
        | "dualplane-plan"
        | "dualplane-notify"
        | "dualplane-resources"
        | "dualplane-runs"
        | "dualplane-tune" => 2,
        "dualplane-input" | "dualplane-rehearse" | "dualplane-report" => 3,
        "dualplane-dev" | "dualplane-lint" | "dualplane-node" | "dualplane-kube" | "dualplane-pages" => 4,
        "dualplane-agent" | "dualplane-guard" | "dualplane-headroom" | "dualplane-measure" => 5,
        "dualplane" | "dualplane-server" => 6,
        other => panic!("{other} is in no layer: give it one in ARCHITECTURE.md and here"),
    };
    for package in meta["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for dep in package["dependencies"].as_array().unwrap() {
            let dep_name = dep["name"].as_str().unwrap();
            if dep["kind"].is_null() && dep_name.starts_with("dualplane") {
                assert!(layer(dep_name) < layer(name), "{name} may not use {dep_name}");
            }
            if PURE.contains(&name) && dep["kind"].is_null() {
                assert!([PURE, PURE_MAY_USE].concat().contains(&dep_name), "{name} may not use {dep_name}");
            }
        }
    }
}

/// Scripts for bash, with their text.
fn scripts(dir: &Path, out: &mut Vec<(PathBuf, String)>) {
    for e in std::fs::read_dir(dir).unwrap() {
        let p = e.unwrap().path();
        if p.is_dir() {
            if !["node_modules", "target", ".venv"].iter().any(|skipped| p.ends_with(skipped)) {
                scripts(&p, out);
            }
        } else if let Ok(text) = std::fs::read_to_string(&p)
            && (text.starts_with("#!/usr/bin/env bash") || text.contains("shellcheck shell=bash"))
        {
            out.push((p, text));
        }
    }
}

/// `grep -q` ends at the first match, and what still writes to it is killed by SIGPIPE: with `pipefail` a check that holds fails
/// now and then. `grep … >/dev/null` reads to the end.
#[test]
fn no_script_ends_what_it_reads_from() {
    let mut files = Vec::new();
    for folder in [".ci", "bench", "dist", "e2e", "python"] {
        scripts(&root().join(folder), &mut files);
    }
    let quiet = regex::Regex::new(r"[^|]\|\s*grep\s+(-\w+\s+)*-\w*q").unwrap();
    let bad: Vec<String> = files
        .iter()
        .flat_map(|(name, text)| text.lines().map(move |l| (name, l)))
        .filter(|(_, line)| quiet.is_match(line))
        .map(|(name, line)| format!("{}: {}", name.display(), line.trim()))
        .collect();
    assert!(files.len() > 30, "only {} scripts", files.len());
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn all_pure_crates_have_the_same_bans() {
    let bans =
        |name: &str| std::fs::read_to_string(root().join("crates").join(name).join("clippy.toml")).unwrap();
    for name in PURE {
        let same = bans(name) == bans("dualplane-core");
        assert!(same, "{name}: its clippy.toml must be the core's: clippy reads only the nearest one");
    }
}
