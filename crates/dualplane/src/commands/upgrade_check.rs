//! `dualplane upgrade-check PATH...`: whether this version reads what an earlier one wrote, before it takes its place, and
//! what of it later versions take away.
//!
//! It reads what has a schema: reports, summaries, calibrations, shapes, and the manifests of bundles. Rules, boards, units,
//! manifests and scripts are asked for names that go. Logs are of nobody's version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use dualplane_base::deprecation::{DEPRECATED, Deprecation};
use dualplane_base::json::pretty;
use dualplane_base::order::Order as _;
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
/// Larger rules and manifests are data.
const MAX_TEXT: u64 = 8 << 20;
/// Files of a folder that are looked at, and folders below it.
const MAX_FILES: usize = 100_000;
const MAX_DEPTH: usize = 32;

/// Texts of others that name metrics and flags, by the end of their names.
const TEXTS: &[&str] = &[
    ".yaml",
    ".yml",
    ".json",
    ".jsonnet",
    ".libsonnet",
    ".service",
    ".conf",
    ".sh",
    ".env",
    ".tf",
    ".tpl",
    ".toml",
];

/// A document of ours.
struct Found {
    path: PathBuf,
    id: Id,
}

/// What was found in all files.
#[derive(Default)]
struct Answer {
    found: Vec<Found>,
    broken: Vec<(PathBuf, String)>,
    /// What a file uses of what goes.
    uses: Vec<(PathBuf, &'static Deprecation)>,
}

pub(super) fn run(args: &UpgradeCheckArgs) -> Result<Code, Failure> {
    let answer = if args.paths.is_empty() { Answer::default() } else { look_at(&args.paths, DEPRECATED)? };
    output::write(&match args.output {
        UpgradeFormat::Text => text(&answer, DEPRECATED, !args.paths.is_empty()),
        UpgradeFormat::Json => pretty(&value(&answer, DEPRECATED))?,
    })?;
    let all = answer.broken.is_empty() && answer.found.iter().all(|f| matches!(f.id, Id::Known(_)));
    Ok(if all { exit::OK } else { exit::BELOW_BOUND })
}

fn look_at(paths: &[PathBuf], table: &'static [Deprecation]) -> Result<Answer, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let there = fs::metadata(path);
        let meta = there.map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
        if meta.is_dir() { walk(path, 0, &mut files) } else { files.push(path.clone()) }
    }
    let knowledge = Knowledge::embedded()?;
    let mut answer = Answer::default();
    for path in files {
        match look(&path, &knowledge, table) {
            Ok(Some((id, uses))) => {
                answer.uses.extend(uses.into_iter().map(|d| (path.clone(), d)));
                answer.found.push(Found { path, id });
            }
            Ok(None) => {
                // Where nothing goes, other people's files are not read.
                let uses = if table.is_empty() { Vec::new() } else { names(&path, table) };
                answer.uses.extend(uses.into_iter().map(|d| (path.clone(), d)));
            }
            Err(why) => answer.broken.push((path, why)),
        }
    }
    if answer.found.is_empty() && answer.broken.is_empty() && answer.uses.is_empty() {
        let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        return Err(Failure::NoEvidence(format!("{}: nothing that dualplane wrote", names.join(", "))));
    }
    Ok(answer)
}

/// What a text of others names of what goes.
fn names<'t>(path: &Path, table: &'t [Deprecation]) -> Vec<&'t Deprecation> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let small = fs::metadata(path).is_ok_and(|m| m.len() <= MAX_TEXT);
    if !small || !TEXTS.iter().any(|end| name.ends_with(end)) {
        return Vec::new();
    }
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    table.iter().filter(|d| d.is_named_in(&text)).collect()
}

/// Files of a folder in the order of their names. Links are not followed: a loop has no end.
fn walk(dir: &Path, depth: usize, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.order_by_key(fs::DirEntry::file_name);
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

/// What a file is, and what it uses of what goes; `None` where it is none of ours.
fn look<'t>(
    path: &Path,
    knowledge: &Knowledge,
    table: &'t [Deprecation],
) -> Result<Option<(Id, Vec<&'t Deprecation>)>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let ends = |all: &[&str]| all.iter().any(|e| name.ends_with(e));
    if ends(&[".tar.zst", ".tar.gz", ".tgz", ".tar", ".zip"]) {
        return Ok(bundle(path, knowledge)?.map(|id| (id, Vec::new())));
    }
    if !ends(&[".json", ".toml"]) || fs::metadata(path).is_ok_and(|m| m.len() > MAX_DOCUMENT) {
        return Ok(None);
    }
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let document = if ends(&[".toml"]) {
        toml::from_str::<Value>(&text).ok()
    } else {
        let value = serde_json::from_str::<Value>(&text);
        // Half a document of ours is a finding; other people's JSON is not.
        if value.is_err() && text.contains("\"dualplane.") {
            return Err("it is cut or damaged".into());
        }
        value.ok()
    };
    let Some(document) = document else { return Ok(None) };
    let Some(id) = document.get("schema").and_then(Value::as_str).and_then(id) else { return Ok(None) };
    let uses = table.iter().filter(|d| d.is_in(&document));
    Ok(Some((id, uses.collect())))
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

/// `looked`: at files, and not only at the table.
fn text(answer: &Answer, table: &[Deprecation], looked: bool) -> String {
    let Answer { found, broken, uses } = answer;
    let mut out = String::new();
    let show = |path: &Path| printable(&path.display().to_string()).into_owned();
    for f in found.iter().filter(|f| !matches!(f.id, Id::Known(_))) {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{}: {}", show(&f.path), f.id);
    }
    for (path, why) in broken {
        let _ = writeln!(out, "{}: {}", show(path), printable(why));
    }
    for (path, d) in uses {
        let _ = writeln!(out, "{}: {d}", show(path));
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
        _ if !looked => Ok(()),
        0 if found.is_empty() => writeln!(out, "nothing there that dualplane wrote"),
        0 => writeln!(out, "dualplane {version} reads all of it"),
        _ => writeln!(out, "dualplane {version} does not read {}", counted(bad, "document")),
    };
    if table.is_empty() {
        let _ = writeln!(out, "nothing of dualplane {version} is deprecated");
    } else {
        let _ = writeln!(out, "deprecated in dualplane {version}:");
    }
    for d in table {
        let _ = writeln!(out, "  {d}");
    }
    out
}

fn value(answer: &Answer, table: &[Deprecation]) -> Value {
    let uses = |path: &Path| -> Vec<String> {
        answer.uses.iter().filter(|(p, _)| p == path).map(|(_, d)| d.name.to_owned()).collect()
    };
    let row = |path: &Path, document: Option<&str>, reads: bool, why: Option<String>| {
        json!({
            "path": path.display().to_string(), "document": document, "reads": reads, "why": why, "deprecated": uses(path),
        })
    };
    let of = |f: &Found| match f.id {
        Id::Known(s) => row(&f.path, Some(s.name), true, None),
        Id::Newer(s, _) | Id::Older(s, _) => row(&f.path, Some(s.name), false, Some(f.id.to_string())),
        Id::Other => row(&f.path, None, false, Some(f.id.to_string())),
    };
    let mut items: Vec<Value> = answer.found.iter().map(of).collect();
    items.extend(answer.broken.iter().map(|(path, why)| row(path, None, false, Some(why.clone()))));
    // Other people's texts are here for what they name; there is nothing in them to be read.
    let ours = |path: &Path| answer.found.iter().any(|f| f.path == path);
    let mut others: Vec<&Path> = answer.uses.iter().map(|(p, _)| p.as_path()).filter(|p| !ours(p)).collect();
    others.dedup();
    items.extend(others.into_iter().map(|path| row(path, None, true, None)));
    let all: Vec<Value> = table.iter().map(goes).collect();
    json!({"schema": "dualplane.upgrade/v1", "version": env!("CARGO_PKG_VERSION"), "items": items, "deprecated": all})
}

fn goes(d: &Deprecation) -> Value {
    json!({
        "thing": d.thing.as_str(), "of": d.of, "name": d.name,
        "since": d.since.to_string(), "gone": d.gone.to_string(), "instead": d.instead,
    })
}

#[cfg(test)]
mod tests {
    use dualplane_base::deprecation::{Release, Thing};

    use super::*;

    const fn entry(thing: Thing, of: &'static str, name: &'static str) -> Deprecation {
        Deprecation { thing, of, name, since: Release(0, 2), gone: Release(0, 3), instead: "use --new" }
    }

    const TABLE: &[Deprecation] = &[
        entry(Thing::Flag, "agent", "--disk"),
        entry(Thing::Metric, "agent", "dualplane_up"),
        entry(Thing::Key, "gate-policy", "headroom.host"),
    ];

    #[test]
    fn what_goes_is_listed_with_who_uses_it() {
        let d = tempfile::tempdir().unwrap();
        let files = [
            ("agent.service", "ExecStart=/usr/bin/dualplane agent --disk 64Mi"),
            ("rules.yaml", "expr: dualplane_up == 0"),
            ("gate.toml", "schema = \"dualplane.gate-policy/v1\"\n[headroom]\nhost = 0.1\n"),
            ("notes.txt", "dualplane agent --disk, dualplane_up"),
        ];
        for (name, content) in files {
            fs::write(d.path().join(name), content).unwrap();
        }
        let answer = look_at(&[d.path().to_owned()], TABLE).unwrap();
        let used: Vec<(&str, &str)> =
            answer.uses.iter().map(|(p, d)| (p.file_name().unwrap().to_str().unwrap(), d.name)).collect();
        assert_eq!(
            used,
            [("agent.service", "--disk"), ("gate.toml", "headroom.host"), ("rules.yaml", "dualplane_up")]
        );
        let said = text(&answer, TABLE, true);
        assert_eq!(said.matches("is deprecated since 0.2, gone with 0.3: use --new").count(), 6, "{said}");
        assert!(said.contains("reads all of it"), "{said}");
        let v = value(&answer, TABLE);
        assert_eq!(v["deprecated"].as_array().unwrap().len(), 3);
        assert_eq!(v["items"].as_array().unwrap().len(), 3);
        assert_eq!(v["items"][0]["deprecated"], json!(["headroom.host"]));
        // The same files where nothing goes: one document, and nobody is told of anything.
        let answer = look_at(&[d.path().to_owned()], &[]).unwrap();
        assert!(answer.uses.is_empty() && answer.found.len() == 1);
        assert!(text(&answer, &[], true).contains("nothing of dualplane"));
    }
}
