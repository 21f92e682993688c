//! Files to incidents: which of the files below one TARGET belong together.

use std::collections::BTreeMap;

use dualplane_core::evidence::{Gap, RawFile};

use super::file;
use super::limits::{MAX_TOTAL, Room};
use super::pile::{Content, Pile, is_part};
use super::sieve::Sieve;
use super::{Incident, gap};

type Files = BTreeMap<String, Content>;

/// The incidents of a pile, named after it or after their folders.
pub(super) fn incidents(pile: Pile<'_>, name: &str) -> Vec<Incident> {
    let sieve = pile.sieve;
    let (files, mut gaps) = pile.take();
    if !several(&files) {
        let mut incident = Incident { name: name.to_owned(), files: Vec::new(), gaps };
        add_all(files, &mut incident, sieve);
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
        add_all(members, &mut incident, sieve);
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
    let parts = groups.iter().any(|g| is_part(g));
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

/// Adds the files of an incident; one that cannot be read is a gap, and the rest goes on.
fn add_all(files: Files, incident: &mut Incident, sieve: &Sieve<'_>) {
    let size = |content: &Content| match content {
        Content::Path(path) => std::fs::metadata(path).map_or(0, |m| m.len()),
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::Sifted(sifted) => sifted.text.len() as u64,
    };
    let room = Room::of(files.values().map(size).collect());
    for (name, content) in files {
        match content {
            Content::Path(path) => {
                if let Err(e) = file::read(&path, &name, incident, sieve, room) {
                    incident.gaps.push(gap(&name, format!("cannot read it ({e})")));
                }
            }
            Content::Bytes(bytes) => unpacked(RawFile::new(name, bytes), incident),
            Content::Sifted(sifted) => unpacked(RawFile::sifted(name, sifted), incident),
        }
    }
}

/// Adds a file that was unpacked.
pub(super) fn unpacked(file: RawFile, incident: &mut Incident) {
    let so_far = incident.held();
    if so_far + file.bytes.len() as u64 > MAX_TOTAL {
        let why = format!("the files before it already contain {} MiB; pass it separately", so_far >> 20);
        incident.gaps.push(gap(&file.name, why));
    } else {
        incident.files.push(file);
    }
}
