//! Reading the folder of incidents, by whoever is not the one that writes it as well.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use super::summary::Summary;
use dualplane_base::incident_id::is_id;

/// Behind the id in the name of a bundle.
pub const BUNDLE_SUFFIX: &str = ".tar.zst";
/// A summary is below 2 KiB; larger is none of ours.
const MAX_SUMMARY: u64 = 16 << 10;

/// When a file was changed and how large it is: a change within one tick of the file system is seen by the size.
pub(crate) type Stamp = (SystemTime, u64);

/// Ids of all summaries with their stamps, the oldest incident first.
pub(crate) fn ids(dir: &Path) -> io::Result<Vec<(String, Stamp)>> {
    let mut out: Vec<(String, Stamp)> = fs::read_dir(dir)?
        .filter_map(Result::ok)
        .filter_map(|e| {
            let name = e.file_name().into_string().ok()?;
            let id = name.strip_suffix(".json").filter(|id| is_id(id))?;
            let meta = e.metadata().ok()?;
            Some((id.to_owned(), (meta.modified().ok()?, meta.len())))
        })
        .collect();
    out.sort();
    Ok(out)
}

/// One summary; `None` for what is no id, not there, or does not say its own name.
pub(crate) fn summary(dir: &Path, id: &str) -> Option<Summary> {
    let (file, size) = open(dir, id, ".json")?;
    let bytes = (size <= MAX_SUMMARY).then(|| io::read_to_string(file).ok())??;
    serde_json::from_str::<Summary>(&bytes).ok().filter(|s| s.id == id)
}

/// All summaries, oldest first, and how many cannot be read.
///
/// # Errors
/// The folder cannot be listed.
pub fn list(dir: &Path) -> io::Result<(Vec<Summary>, u64)> {
    let ids = ids(dir)?;
    let found: Vec<Summary> = ids.iter().filter_map(|(id, _)| summary(dir, id)).collect();
    let unreadable = ids.len().saturating_sub(found.len()) as u64;
    Ok((found, unreadable))
}

/// The bundle of an incident with its size.
pub(crate) fn bundle(dir: &Path, id: &str) -> Option<(File, u64)> {
    open(dir, id, BUNDLE_SUFFIX)
}

fn open(dir: &Path, id: &str, suffix: &str) -> Option<(File, u64)> {
    if !is_id(id) {
        return None;
    }
    // A link would lead out of the folder, and a pipe would never end to be opened.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).ok()?;
    let path = dir.join(format!("{id}{suffix}"));
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
    Some((file, meta.len()))
}
