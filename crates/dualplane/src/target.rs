//! Reads a TARGET: which files belong to which incident. The only place of `triage` that touches the file system.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dualplane_core::evidence::{Gap, RawFile};

use crate::commands::Failure;

/// Of one file; what lies beyond is a gap. The head tells the start-up, the tail the death.
const MAX_FILE: u64 = 512 << 20;
const HEAD: u64 = 64 << 20;
/// Of one target.
const MAX_FILES: usize = 10_000;
/// Of one incident, all files together; the rest are gaps.
const MAX_TOTAL: u64 = 2 << 30;
/// Below a target.
const MAX_DEPTH: usize = 8;

/// Names that are labels of a corpus, never evidence: a tool that reads its own answers measures nothing.
const LABELS: &[&str] = &["truth.json", "expected.json", "NOTES.md", "README.md"];

/// Folders inside one incident, as bundles and people name them; several of them are not several incidents.
const PARTS: &[&str] = &[
    "log",
    "logs",
    "pod",
    "pods",
    "event",
    "events",
    "node",
    "nodes",
    "kernel",
    "metric",
    "metrics",
    "cluster",
    "container",
    "containers",
    "previous",
    "current",
    "objects",
    "peers",
];

/// The files of one incident.
#[derive(Debug, Default)]
pub(crate) struct Incident {
    /// Name for reports.
    pub(crate) name: String,
    /// Files.
    pub(crate) files: Vec<RawFile>,
    /// What could not be read.
    pub(crate) gaps: Vec<Gap>,
}

/// Reads all targets: each directory gives one incident or several, all single files together one.
pub(crate) fn read(targets: &[PathBuf]) -> Result<Vec<Incident>, Failure> {
    let mut incidents = Vec::new();
    let mut single = Incident::default();
    for path in targets {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .take(MAX_FILE)
                .read_to_end(&mut bytes)
                .map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
            if bytes.len() as u64 >= MAX_FILE {
                let why = format!("only its first {} MiB were read; give it as a file", MAX_FILE >> 20);
                single.gaps.push(gap("stdin", why));
            }
            single.files.push(RawFile { name: "stdin".into(), bytes });
            continue;
        }
        let meta = fs::metadata(path).map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
        if meta.is_dir() {
            directory(path, &mut incidents)?;
        } else {
            let name = path
                .file_name()
                .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
            file(path, &unique(name, &single.files), &mut single)
                .map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
        }
    }
    if !single.files.is_empty() || !single.gaps.is_empty() {
        single.name = single.files.first().map_or_else(|| "files".into(), |f| f.name.clone());
        incidents.push(single);
    }
    Ok(incidents)
}

/// Two files of one name from different folders keep apart.
fn unique(name: String, files: &[RawFile]) -> String {
    let taken = |n: &str| files.iter().any(|f| f.name == n);
    if !taken(&name) {
        return name;
    }
    (2..).map(|i| format!("{i}/{name}")).find(|n| !taken(n)).unwrap_or(name)
}

fn directory(root: &Path, incidents: &mut Vec<Incident>) -> Result<(), Failure> {
    let mut files = BTreeMap::new();
    let mut gaps = Vec::new();
    walk(root, "", 0, &mut files, &mut gaps)
        .map_err(|source| Failure::Unreadable { path: root.into(), source })?;
    let root_name =
        root.canonicalize().ok().and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()));
    let root_name = root_name.unwrap_or_else(|| root.display().to_string());
    if let Some(groups) = several(&files) {
        let first = incidents.len();
        for (group, members) in groups {
            let mut incident = Incident { name: group.clone(), ..Incident::default() };
            for (name, path) in members {
                let inner = name.strip_prefix(&format!("{group}/")).unwrap_or(&name).to_owned();
                add(&path, &inner, &mut incident);
            }
            let prefix = format!("{group}/");
            let (own, rest): (Vec<Gap>, Vec<Gap>) =
                gaps.into_iter().partition(|g| g.what.starts_with(&prefix));
            incident.gaps.extend(own);
            gaps = rest;
            incidents.push(incident);
        }
        // What belongs to no group in particular is told with the first.
        if let Some(incident) = incidents.get_mut(first) {
            incident.gaps.extend(gaps);
        }
    } else {
        let mut incident = Incident { name: root_name, files: Vec::new(), gaps };
        for (name, path) in &files {
            add(path, name, &mut incident);
        }
        incidents.push(incident);
    }
    Ok(())
}

type Files = BTreeMap<String, PathBuf>;

/// A folder without evidence of its own whose sub-folders each hold some is a folder of incidents.
fn several(files: &Files) -> Option<BTreeMap<String, Files>> {
    if files.keys().any(|n| !n.contains('/')) {
        return None;
    }
    let mut groups: BTreeMap<String, Files> = BTreeMap::new();
    for (name, path) in files {
        let group = name.split('/').next().unwrap_or_default().to_owned();
        groups.entry(group).or_default().insert(name.clone(), path.clone());
    }
    let parts = groups.keys().any(|g| PARTS.contains(&g.to_lowercase().as_str()));
    (groups.len() > 1 && !parts).then_some(groups)
}

/// Collects files; links are not followed, so that a target cannot lead out of itself or round in circles.
fn walk(dir: &Path, prefix: &str, depth: usize, files: &mut Files, gaps: &mut Vec<Gap>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || LABELS.contains(&name.as_str()) {
            continue;
        }
        let full = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if depth >= MAX_DEPTH {
                gaps.push(gap(&full, format!("it lies deeper than {MAX_DEPTH} folders; pass it by itself")));
            } else if let Err(e) = walk(&entry.path(), &full, depth + 1, files, gaps) {
                gaps.push(gap(&full, format!("the folder cannot be read ({e})")));
            }
        } else if kind.is_file() {
            if files.len() < MAX_FILES {
                files.insert(full, entry.path());
            } else {
                gaps.push(gap(
                    &full,
                    format!("more than {MAX_FILES} files; pass the folder of one incident"),
                ));
                return Ok(());
            }
        } else {
            gaps.push(gap(&full, "it is a link or a device and was not followed".into()));
        }
    }
    Ok(())
}

fn gap(what: &str, why: String) -> Gap {
    Gap { what: what.to_owned(), why, command: None }
}

/// Adds a file; one that cannot be read is a gap, and the rest goes on.
fn add(path: &Path, name: &str, incident: &mut Incident) {
    if let Err(e) = file(path, name, incident) {
        incident.gaps.push(gap(name, format!("it cannot be read ({e})")));
    }
}

fn file(path: &Path, name: &str, incident: &mut Incident) -> io::Result<()> {
    let mut f = fs::File::open(path)?;
    let size = f.metadata()?.len();
    let so_far: u64 = incident.files.iter().map(|f| f.bytes.len() as u64).sum();
    if so_far + size.min(MAX_FILE) > MAX_TOTAL {
        let why = format!("the files before it already hold {} MiB; pass it by itself", so_far >> 20);
        incident.gaps.push(gap(name, why));
        return Ok(());
    }
    let mut bytes = Vec::new();
    if size <= MAX_FILE {
        // A file may grow while it is read (a live log, /proc): the cap holds regardless.
        f.take(MAX_FILE).read_to_end(&mut bytes)?;
    } else {
        use std::io::{Seek, SeekFrom};
        f.by_ref().take(HEAD).read_to_end(&mut bytes)?;
        f.seek(SeekFrom::Start(size - (MAX_FILE - HEAD)))?;
        // A whole line end, so that the cut does not make one line of two halves.
        bytes.push(b'\n');
        f.take(MAX_FILE - HEAD).read_to_end(&mut bytes)?;
        incident.gaps.push(gap(
            name,
            format!(
                "of its {} MiB only the first {} and the last {} MiB were read; line numbers behind the cut are too low",
                size >> 20,
                HEAD >> 20,
                (MAX_FILE - HEAD) >> 20
            ),
        ));
    }
    incident.files.push(RawFile { name: name.to_owned(), bytes });
    Ok(())
}
