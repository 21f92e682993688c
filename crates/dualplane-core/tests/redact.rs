//! Whole files are masked without touching what a verdict rests on, and planted secrets do not survive in any carrier.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    missing_docs,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::Redactor;
use dualplane_core::report;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of an incident, JSON written anew so that only masking can make a difference.
fn incident(dir: &Path) -> Vec<RawFile> {
    let mut paths = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for e in fs::read_dir(dir).unwrap() {
            let p = e.unwrap().path();
            if p.is_dir() {
                dirs.push(p);
            } else if p.file_name().unwrap() != "truth.json" {
                paths.push(p);
            }
        }
    }
    paths.sort();
    let file = |p: &PathBuf| {
        let name = p.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(p).unwrap();
        let json = p.extension().is_some_and(|e| e == "json");
        let bytes = match serde_json::from_slice::<Value>(&bytes) {
            Ok(v) if json => serde_json::to_vec_pretty(&v).unwrap(),
            _ => bytes,
        };
        RawFile::new(&name, bytes)
    };
    paths.iter().map(file).collect()
}

fn masked(files: &[RawFile], k: &Knowledge, counts: &mut BTreeMap<String, u64>) -> Vec<RawFile> {
    let mut r = Redactor::new(k);
    let mut out = Vec::new();
    for f in files {
        let bytes = match serde_json::from_slice::<Value>(&f.bytes) {
            Ok(mut v) if f.name.ends_with(".json") => {
                r.json(&mut v);
                let once = v.clone();
                r.json(&mut v);
                assert_eq!(v, once, "{}: masking twice is masking once", f.name);
                serde_json::to_vec_pretty(&v).unwrap()
            }
            _ => match std::str::from_utf8(&f.bytes) {
                Ok(text) => {
                    let new = r.text(text);
                    assert_eq!(new.split('\n').count(), text.split('\n').count(), "{}", f.name);
                    new.into_owned().into_bytes()
                }
                Err(_) => f.bytes.clone(),
            },
        };
        out.push(RawFile::new(&f.name, bytes));
    }
    for (id, n) in r.counts() {
        *counts.entry(id.clone()).or_default() += n;
    }
    out
}

fn verdict(files: Vec<RawFile>, k: &Knowledge) -> Vec<(String, String, Option<String>)> {
    let one = |r: report::Report| {
        let v = r.verdict;
        let trigger = v.trigger.map(|t| format!("{:?}", t.place));
        (format!("{:?}", v.class), format!("{:?}", v.phase), trigger)
    };
    report::triage_all("x", files, Vec::new(), k).into_iter().map(one).collect()
}

/// `DUALPLANE_INCIDENTS` names another folder of incidents.
#[test]
fn masking_changes_no_verdict() {
    let k = Knowledge::embedded().unwrap();
    let dir = std::env::var_os("DUALPLANE_INCIDENTS").map_or_else(|| root().join("testdata/incidents"), PathBuf::from);
    let mut dirs: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    dirs.sort();
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for d in &dirs {
        let files = incident(d);
        let new = masked(&files, &k, &mut counts);
        for (a, b) in files.iter().zip(&new).filter(|(a, b)| a.bytes != b.bytes) {
            if std::env::var_os("DUALPLANE_SHOW").is_none() {
                break;
            }
            let (a, b) = (String::from_utf8_lossy(&a.bytes), String::from_utf8_lossy(&b.bytes));
            for (a, b) in a.lines().zip(b.lines()).filter(|(a, b)| a != b).take(4) {
                let cut = |s: &str| s.chars().take(260).collect::<String>();
                eprintln!("{}\n  - {}\n  + {}", d.display(), cut(a), cut(b));
            }
        }
        let (was, is) = (verdict(files, &k), verdict(new, &k));
        if was != is {
            wrong.push(format!("{}\n  was {was:?}\n  is  {is:?}", d.display()));
        }
    }
    eprintln!("{} incidents, {counts:?}", dirs.len());
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), dirs.len(), wrong.join("\n"));
}

#[allow(dead_code)]
fn unused(_: Cow<'_, str>) {}
