//! Files to incidents: which of the files below one TARGET belong together.

use std::collections::BTreeMap;

use dualplane_core::evidence::{Gap, RawFile};

use super::file;
use super::limits::MAX_TOTAL;
use super::pile::{Content, PARTS, Pile};
use super::{Incident, gap};

type Files = BTreeMap<String, Content>;

/// The incidents of a pile, named after it or after their folders.
pub(super) fn incidents(pile: Pile, name: &str) -> Vec<Incident> {
    let (files, mut gaps) = pile.take();
    if !several(&files) {
        let mut incident = Incident { name: name.to_owned(), files: Vec::new(), gaps };
        for (name, content) in files {
            add(content, &name, &mut incident);
        }
        return vec![incident];
    }
    let mut groups: BTreeMap<String, Files> = BTreeMap::new();
    for (name, content) in files {
        let Some((group, inner)) = name.split_once('/') else { continue };
        groups.entry(group.to_owned()).or_default().insert(inner.to_owned(), content);
    }
    let mut out = Vec::new();
    for (group, members) in groups {
        let mut incident = Incident { name: group.clone(), ..Incident::default() };
        for (inner, content) in members {
            add(content, &inner, &mut incident);
        }
        let prefix = format!("{group}/");
        let (own, rest): (Vec<Gap>, Vec<Gap>) = gaps.into_iter().partition(|g| g.what.starts_with(&prefix));
        incident.gaps.extend(own);
        gaps = rest;
        out.push(incident);
    }
    // What belongs to no group in particular is told with the first.
    if let Some(first) = out.first_mut() {
        first.gaps.extend(gaps);
    }
    out
}

/// A folder without evidence of its own whose sub-folders each hold some is a folder of incidents.
fn several(files: &Files) -> bool {
    let mut groups: Vec<String> =
        files.keys().map(|n| n.split('/').next().unwrap_or_default().to_lowercase()).collect();
    groups.dedup();
    let parts = groups.iter().any(|g| PARTS.contains(&g.as_str()));
    groups.len() > 1 && files.keys().all(|n| n.contains('/')) && !parts && !is_cluster_dump(files)
}

/// `kubectl cluster-info dump` writes NAMESPACE/pods.json and NAMESPACE/POD/logs.txt: its folders are namespaces.
fn is_cluster_dump(files: &Files) -> bool {
    let at = |depth: usize, last: &[&str]| {
        files.keys().any(|n| {
            n.split('/').count() == depth && n.rsplit('/').next().is_some_and(|base| last.contains(&base))
        })
    };
    at(3, &["logs.txt"]) && at(2, &["pods.json", "pods.yaml", "events.json", "events.yaml"])
}

/// Adds a file; one that cannot be read is a gap, and the rest goes on.
fn add(content: Content, name: &str, incident: &mut Incident) {
    match content {
        Content::Path(path) => {
            if let Err(e) = file::read(&path, name, incident) {
                incident.gaps.push(gap(name, format!("it cannot be read ({e})")));
            }
        }
        Content::Bytes(bytes) => bytes_of(bytes, name, incident),
    }
}

/// Adds a file that was unpacked.
pub(super) fn bytes_of(bytes: Vec<u8>, name: &str, incident: &mut Incident) {
    let so_far = incident.held();
    if so_far + bytes.len() as u64 > MAX_TOTAL {
        let why = format!("the files before it already hold {} MiB; pass it by itself", so_far >> 20);
        incident.gaps.push(gap(name, why));
    } else {
        incident.files.push(RawFile { name: name.to_owned(), bytes });
    }
}
