//! Walks all of `knowledge/`: every example hits its own entry, every near miss does not, and an example alone in a
//! log never ends in another memory plane.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::{Knowledge, Mark};
use dualplane_core::text::strip_ansi;
use dualplane_core::verdict::{Class, Plane};
use dualplane_core::{redact, report};

struct Entry {
    file: String,
    id: String,
    table: toml::Table,
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for e in fs::read_dir(dir).unwrap() {
        let p = e.unwrap().path();
        if p.is_dir() {
            files(&p, out);
        } else if p.extension().is_some_and(|e| e == "toml") {
            out.push(p);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge")
}

fn entries() -> Vec<Entry> {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let doc: toml::Table = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let file = path.strip_prefix(root()).unwrap().with_extension("").to_string_lossy().into_owned();
        for e in doc.get("signature").and_then(toml::Value::as_array).into_iter().flatten() {
            let table = e.as_table().unwrap().clone();
            let id = table["id"].as_str().unwrap().to_owned();
            out.push(Entry { file: file.clone(), id, table });
        }
    }
    assert!(out.len() > 500, "only {} signatures found", out.len());
    out
}

fn strings(e: &Entry, key: &str) -> Vec<String> {
    e.table
        .get(key)
        .and_then(toml::Value::as_array)
        .map(|a| a.iter().map(|v| v.as_str().unwrap().to_owned()).collect())
        .unwrap_or_default()
}

fn ids(k: &Knowledge, line: &str, context: bool) -> Vec<String> {
    let text = strip_ansi(line);
    k.matches(&text, |_| context).iter().map(|m| k.signature(m.id).unwrap().id.clone()).collect()
}

#[test]
fn entries_are_whole_and_ids_unique() {
    let mut seen = BTreeSet::new();
    for e in entries() {
        assert!(seen.insert(e.id.clone()), "{}: id used twice", e.id);
        let stem = e.file.rsplit('/').next().unwrap();
        assert!(e.id.starts_with(&format!("{stem}.")), "{}: id must begin with its file's name {stem}", e.id);
        for key in ["mark", "literals", "versions", "meaning", "source", "examples", "near_misses"] {
            assert!(e.table.contains_key(key), "{}: no {key}", e.id);
        }
        assert!(!strings(&e, "examples").is_empty(), "{}: an example is a real line", e.id);
        assert!(
            !strings(&e, "near_misses").is_empty(),
            "{}: a near miss is what keeps the pattern honest",
            e.id
        );
        let mark = e.table["mark"].as_str().unwrap();
        if ["fatal", "degraded", "suspect", "failure"].contains(&mark) {
            assert!(e.table.contains_key("class"), "{}: {mark} needs a class", e.id);
        }
        if ["fatal", "degraded", "suspect"].contains(&mark) {
            assert_ne!(e.table["class"].as_str(), Some("not_memory"), "{}", e.id);
        }
        if mark == "failure" {
            assert_eq!(e.table["class"].as_str(), Some("not_memory"), "{}", e.id);
        }
        for literal in strings(&e, "literals") {
            assert!(literal.len() >= 4, "{}: literal {literal:?} is too short for a prefilter", e.id);
        }
    }
}

#[test]
fn every_pattern_compiles_and_is_bounded() {
    for e in entries() {
        if let Some(p) = e.table.get("pattern").and_then(toml::Value::as_str) {
            let r = regex::bytes::RegexBuilder::new(p).unicode(false).size_limit(1 << 20).build();
            assert!(r.is_ok(), "{}: {}", e.id, r.unwrap_err());
        }
    }
}

#[test]
fn every_example_hits_and_every_near_miss_does_not() {
    let k = Knowledge::embedded().unwrap();
    let mut wrong = Vec::new();
    for e in entries() {
        for line in strings(&e, "examples") {
            if !ids(&k, &line, true).contains(&e.id) {
                wrong.push(format!("{}: its example does not hit: {line}", e.id));
            }
        }
        for line in strings(&e, "near_misses") {
            if ids(&k, &line, false).contains(&e.id) {
                wrong.push(format!("{}: its near miss hits: {line}", e.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An example as the only line of a log: what it proves must come out, and never another plane.
#[test]
fn an_example_alone_never_ends_in_another_plane() {
    let k = Knowledge::embedded().unwrap();
    let mut wrong = Vec::new();
    for e in entries().iter().filter(|e| e.file != "kubelet") {
        let signature = k.signatures().iter().find(|s| s.id == e.id).unwrap();
        for line in strings(e, "examples") {
            // Entries that judge by wording need the traceback whose end they are.
            let line = if e.file == "runtime/generic" {
                format!("Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n{line}")
            } else {
                line
            };
            let name = if e.file == "kernel" { "kernel.log" } else { "previous.log" };
            let log = RawFile::new(name, format!("{line}\n").into_bytes());
            let reports = report::triage_all("x", vec![log], Vec::new(), &k);
            let class = reports[0].verdict.class;
            let wanted = signature.class.map_or(Plane::None, Class::plane);
            let ok = match signature.mark {
                Mark::Fatal if e.table.contains_key("context") => true,
                Mark::Fatal | Mark::Degraded => class.plane() == wanted,
                Mark::Failure | Mark::Benign | Mark::UserText => class.plane() == Plane::None,
                // A wrapper may quote the error it wraps.
                _ => true,
            };
            if !ok {
                wrong.push(format!("{} ({:?}): got {class} for: {line}", e.id, signature.mark));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_secret_is_masked_and_every_near_miss_stays() {
    let k = Knowledge::embedded().unwrap();
    let doc: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("redaction.toml")).unwrap()).unwrap();
    for r in doc["redaction"].as_array().unwrap() {
        let id = r["id"].as_str().unwrap();
        for line in r["examples"].as_array().unwrap() {
            let line = line.as_str().unwrap();
            assert!(redact::line(line, &k).contains("[redacted:"), "{id} leaves {line}");
        }
        for line in r["near_misses"].as_array().unwrap() {
            let line = line.as_str().unwrap();
            assert_eq!(redact::line(line, &k), line, "{id}");
        }
    }
    let masked = redact::line("Received request c-1: prompt: 'my secret plan', params: x", &k);
    assert!(!masked.contains("plan") && masked.contains("[redacted:user_text]"), "{masked}");
}

#[test]
fn xids_and_cards_are_unique_and_xid_examples_parse() {
    let k = Knowledge::embedded().unwrap();
    let codes: BTreeSet<u32> = k.xids().iter().map(|x| x.code).collect();
    assert_eq!(codes.len(), k.xids().len());
    let cards: BTreeSet<&str> = k.gpus().iter().map(|g| g.id.as_str()).collect();
    assert_eq!(cards.len(), k.gpus().len());
    assert_eq!(k.gpu("NVIDIA H100 80GB HBM3").unwrap().id, "H100-80GB");
    assert_eq!(k.gpu("h100-80gb").unwrap().id, "H100-80GB");
    assert!(k.gpu("no such card").is_none());
    let doc: toml::Table = toml::from_str(&fs::read_to_string(root().join("xid.toml")).unwrap()).unwrap();
    let mut lines = 0;
    for x in doc["xid"].as_array().unwrap() {
        let code = x["code"].as_integer().unwrap();
        for line in x["examples"].as_array().unwrap() {
            let log = RawFile::new("kernel.log", line.as_str().unwrap().as_bytes().to_vec());
            let r = &report::triage_all("x", vec![log], Vec::new(), &k)[0];
            assert_eq!(r.facts.xids.first().map(|e| i64::from(e.code)), Some(code), "{line}");
            assert!(
                matches!(r.verdict.class, Class::XidHardware | Class::NotMemory),
                "{line}: {}",
                r.verdict.class
            );
            lines += 1;
        }
    }
    assert!(lines >= 30, "{lines}");
}
