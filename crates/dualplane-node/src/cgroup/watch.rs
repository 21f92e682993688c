//! Notices that groups came or went, by one `stat` a directory instead of a walk.
//!
//! The kernel counts the groups below one in the link count of its directory. One that went while another came leaves the
//! count; then the reader of the one that went says so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// State of the directories of the last walk.
#[derive(Debug, Default)]
pub struct Watch {
    dirs: Vec<(PathBuf, u64, i64, i64)>,
}

impl Watch {
    /// Remembers how these directories are now.
    #[must_use]
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        let dirs = dirs.into_iter().map(|d| {
            let (links, s, ns) = state(&d).unwrap_or_default();
            (d, links, s, ns)
        });
        Self { dirs: dirs.collect() }
    }

    /// A walk is due. Nothing is allocated.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.dirs.iter().any(|(d, links, s, ns)| state(d).is_none_or(|now| now != (*links, *s, *ns)))
    }

    /// Directories that are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dirs.len()
    }

    /// Nothing is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }
}

fn state(dir: &PathBuf) -> Option<(u64, i64, i64)> {
    let m = fs::symlink_metadata(dir).ok()?;
    Some((m.nlink(), m.mtime(), m.mtime_nsec()))
}
