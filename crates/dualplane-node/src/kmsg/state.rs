//! What is kept over a restart: up to which record the kernel's messages were taken in, and the counts up to there.
//!
//! Both stand in one file that is replaced as a whole: after `kill -9` the counts belong to exactly the records below the
//! number. A full disk leaves the file before; then records are read again, none is counted twice.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::xid_counts::{XidCount, XidCounts, XidKey};

/// Larger is not ours.
const MAX_FILE: u64 = 4 << 20;

/// The state could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct StateError {
    path: PathBuf,
    source: io::Error,
}

/// State of following one boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Name of the boot; of another one, nothing below holds.
    pub boot: String,
    /// Records below are taken in, except those of an OOM record that was not whole.
    pub next: Option<u64>,
    /// Xids below are counted.
    pub counted: u64,
    /// Records that were overwritten before they were read.
    pub lost: u64,
    /// Counts of Xids.
    pub fold: XidCounts,
}

#[derive(Serialize, Deserialize)]
struct OnDisk {
    version: u32,
    boot: String,
    next: Option<u64>,
    counted: u64,
    lost: u64,
    other: u64,
    xids: Vec<(XidKey, XidCount)>,
}

impl State {
    /// The state of this boot; a new one where there is none, where it is of another boot, or where it cannot be read.
    #[must_use]
    pub fn load(path: &Path, boot: &str) -> Self {
        let new = || Self { boot: boot.to_owned(), ..Self::default() };
        let small = fs::metadata(path).is_ok_and(|m| m.len() <= MAX_FILE);
        let Some(kept) = small.then(|| fs::read(path).ok()).flatten() else { return new() };
        match serde_json::from_slice::<OnDisk>(&kept) {
            Ok(d) if d.version == 1 && d.boot == boot => Self {
                boot: d.boot,
                next: d.next,
                counted: d.counted,
                lost: d.lost,
                fold: XidCounts::restore(d.xids, d.other),
            },
            _ => new(),
        }
    }

    /// Replaces the file, whole or not at all.
    ///
    /// # Errors
    /// No space, no right; the file before stays.
    pub fn save(&self, path: &Path) -> Result<(), StateError> {
        let wrap = |source| StateError { path: path.to_owned(), source };
        let disk = OnDisk {
            version: 1,
            boot: self.boot.clone(),
            next: self.next,
            counted: self.counted,
            lost: self.lost,
            other: self.fold.other,
            xids: self.fold.kinds().map(|(k, c)| (k.clone(), c.clone())).collect(),
        };
        let bytes = serde_json::to_vec(&disk).map_err(|e| wrap(e.into()))?;
        let new = path.with_extension("new");
        let write = || {
            let mut f = File::create(&new)?;
            f.write_all(&bytes)?;
            f.sync_data()?;
            fs::rename(&new, path)
        };
        write().map_err(|e| {
            let _ = fs::remove_file(&new);
            wrap(e)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_replaced_whole_or_stays() {
        let d = tempfile::tempdir().unwrap();
        let path = d.path().join("kmsg.json");
        let state = State { boot: "b".into(), next: Some(7), lost: 3, ..State::default() };
        state.save(&path).unwrap();
        assert_eq!(State::load(&path, "b"), state);
        // The new file cannot be written: a folder stands in its way.
        fs::create_dir(path.with_extension("new")).unwrap();
        let later = State { next: Some(9), ..state.clone() };
        assert!(later.save(&path).unwrap_err().to_string().contains("kmsg.json"));
        assert_eq!(State::load(&path, "b"), state);
        fs::write(&path, "{\"version\": 1, \"bo").unwrap();
        assert_eq!(State::load(&path, "b"), State { boot: "b".into(), ..State::default() });
        assert_eq!(State::load(&d.path().join("none"), "b").next, None);
    }
}
