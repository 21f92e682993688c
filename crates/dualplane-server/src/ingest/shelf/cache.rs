//! What was fetched from a bucket of late lies on this machine as well.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes that are kept.
const ROOM: u64 = 2 << 30;

/// A folder of bundles; those asked for longest ago go first.
#[derive(Debug)]
pub(super) struct Cache(PathBuf);

impl Cache {
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Where a bundle of this name and sum lies.
    pub(super) fn path(&self, id: &str, sum: &str) -> PathBuf {
        self.0.join(format!("{id}.{}.bundle", sum.get(..16).unwrap_or(sum)))
    }

    /// It is there; from now on it was asked for last.
    pub(super) fn has(&self, path: &Path) -> bool {
        let file = File::options().append(true).open(path);
        file.map(|f| drop(f.set_modified(SystemTime::now()))).is_ok()
    }

    /// Makes room.
    pub(super) fn prune(&self) {
        let all = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let of = |e: fs::DirEntry| {
            let m = e.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((m.modified().unwrap_or(SystemTime::UNIX_EPOCH), m.len(), e.path()))
        };
        let mut all: Vec<(SystemTime, u64, PathBuf)> = all.filter_map(of).collect();
        all.sort();
        let mut left: u64 = all.iter().map(|(_, n, _)| n).sum();
        for (_, n, path) in all {
            if left <= ROOM {
                return;
            }
            let _ = fs::remove_file(path);
            left = left.saturating_sub(n);
        }
    }
}
