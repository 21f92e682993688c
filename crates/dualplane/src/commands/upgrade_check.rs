//! `dualplane upgrade-check PATH...`: whether this version reads what an earlier one wrote, before it takes its place.
//!
//! It reads what has a schema: reports, summaries, calibrations, shapes, and the manifests of bundles. Logs and manifests of
//! Kubernetes are of nobody's version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use dualplane_base::json::pretty;
use dualplane_base::schema::{Id, Schema, id};
use dualplane_base::text::{counted, printable};
use dualplane_core::knowledge::Knowledge;
use dualplane_input::Sieve;
use serde_json::{Value, json};

use super::Failure;
use crate::args::{UpgradeCheckArgs, UpgradeFormat};
use crate::exit::{self, Code};
use crate::output;

/// Larger documents of ours do not exist.
const MAX_DOCUMENT: u64 = 64 << 20;
/// Files of a folder that are looked at, and folders below it.
const MAX_FILES: usize = 100_000;
const MAX_DEPTH: usize = 32;

/// A document of ours.
struct Found {
    path: PathBuf,
    id: Id,
}

pub(super) fn run(args: &UpgradeCheckArgs) -> Result<Code, Failure> {
    let mut files = Vec::new();
    for path in &args.paths {
        let there = fs::metadata(path);
        let meta = there.map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
        if meta.is_dir() { walk(path, 0, &mut files) } else { files.push(path.clone()) }
    }
    let knowledge = Knowledge::embedded()?;
    let mut found = Vec::new();
    let mut broken = Vec::new();
    for path in files {
        match look(&path, &knowledge) {
            Ok(Some(id)) => found.push(Found { path, id }),
            Ok(None) => {}
            Err(why) => broken.push((path, why)),
        }
    }
    if found.is_empty() && broken.is_empty() {
        let names: Vec<String> = args.paths.iter().map(|p| p.display().to_string()).collect();
        return Err(Failure::NoEvidence(format!("{}: nothing that dualplane wrote", names.join(", "))));
    }
    output::write(&match args.output {
        UpgradeFormat::Text => text(&found, &broken),
        UpgradeFormat::Json => pretty(&value(&found, &broken))?,
    })?;
    let all = broken.is_empty() && found.iter().all(|f| matches!(f.id, Id::Known(_)));
    Ok(if all { exit::OK } else { exit::BELOW_BOUND })
}

/// Files of a folder in the order of their names. Links are not followed: a loop has no end.
fn walk(dir: &Path, depth: usize, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if out.len() >= MAX_FILES {
            return;
        }
        match entry.file_type() {
            Ok(t) if t.is_dir() && depth < MAX_DEPTH => walk(&entry.path(), depth + 1, out),
            Ok(t) if t.is_file() => out.push(entry.path()),
            _ => {}
        }
    }
}

/// What a file is; `None` where it is none of ours.
fn look(path: &Path, knowledge: &Knowledge) -> Result<Option<Id>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let ends = |all: &[&str]| all.iter().any(|e| name.ends_with(e));
    if ends(&[".tar.zst", ".tar.gz", ".tgz", ".tar", ".zip"]) {
        return bundle(path, knowledge);
    }
    if !ends(&[".json", ".toml"]) || fs::metadata(path).is_ok_and(|m| m.len() > MAX_DOCUMENT) {
        return Ok(None);
    }
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let schema = if ends(&[".toml"]) {
        toml::from_str::<toml::Table>(&text).ok().and_then(|t| Some(t.get("schema")?.as_str()?.to_owned()))
    } else {
        let value = serde_json::from_str::<Value>(&text);
        // Half a document of ours is a finding; other people's JSON is not.
        if value.is_err() && text.contains("\"dualplane.") {
            return Err("it is cut or damaged".into());
        }
        value.ok().and_then(|v| Some(v.get("schema")?.as_str()?.to_owned()))
    };
    Ok(schema.as_deref().and_then(id))
}

/// The manifest in an archive. One without a manifest is other people's.
fn bundle(path: &Path, knowledge: &Knowledge) -> Result<Option<Id>, String> {
    let read =
        dualplane_input::read(&[path.to_owned()], &Sieve::new(knowledge)).map_err(|e| e.to_string())?;
    let files = || read.iter().flat_map(|i| &i.files);
    let manifest = files().find(|f| f.name.rsplit('/').next() == Some("manifest.json"));
    let Some(manifest) = manifest else {
        let gap = read.iter().flat_map(|i| &i.gaps).next();
        return match gap {
            Some(gap) if files().next().is_none() => Err(gap.why.clone()),
            _ => Ok(None),
        };
    };
    let value: Value =
        serde_json::from_slice(&manifest.bytes).map_err(|_| "its manifest is damaged".to_owned())?;
    Ok(value.get("schema").and_then(Value::as_str).and_then(id))
}

fn text(found: &[Found], broken: &[(PathBuf, String)]) -> String {
    let mut out = String::new();
    let show = |path: &Path| printable(&path.display().to_string()).into_owned();
    for f in found.iter().filter(|f| !matches!(f.id, Id::Known(_))) {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{}: {}", show(&f.path), f.id);
    }
    for (path, why) in broken {
        let _ = writeln!(out, "{}: {}", show(path), printable(why));
    }
    let mut read: BTreeMap<&str, usize> = BTreeMap::new();
    for f in found {
        if let Id::Known(Schema { what, .. }) = f.id {
            *read.entry(what).or_default() += 1;
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    for (what, count) in &read {
        let _ = writeln!(out, "{count:>6}  {what}");
    }
    let bad = broken.len() + found.len() - read.values().sum::<usize>();
    let _ = match bad {
        0 => writeln!(out, "dualplane {version} reads all of it"),
        _ => writeln!(out, "dualplane {version} does not read {}", counted(bad, "document")),
    };
    out
}

fn value(found: &[Found], broken: &[(PathBuf, String)]) -> Value {
    let of = |f: &Found| {
        let (name, reads, why) = match f.id {
            Id::Known(s) => (Some(s.name), true, None),
            Id::Newer(s, _) | Id::Older(s, _) => (Some(s.name), false, Some(f.id.to_string())),
            Id::Other => (None, false, Some(f.id.to_string())),
        };
        json!({"path": f.path.display().to_string(), "document": name, "reads": reads, "why": why})
    };
    let damaged = |(path, why): &(PathBuf, String)| json!({"path": path.display().to_string(), "document": null, "reads": false, "why": why});
    let items: Vec<Value> = found.iter().map(of).chain(broken.iter().map(damaged)).collect();
    json!({"schema": "dualplane.upgrade/v1", "version": env!("CARGO_PKG_VERSION"), "items": items})
}
