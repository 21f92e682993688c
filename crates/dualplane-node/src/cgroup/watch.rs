//! Keeps what directories list, and looks into one again only when groups came or went in it: a `stat` each instead of a walk.
//!
//! The kernel counts the groups below one in the link count of its directory. One that went while another came leaves the
//! count; then the reader of the one that went says so, and its directory is forgotten, or it was listed itself, as a pod's
//! group is, and there is nothing any more where it was. For what none of them tells, a file
//! system without such a count, one directory after another is looked into again with time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Listings of directories.
#[derive(Debug, Default)]
pub struct Watch {
    dirs: BTreeMap<PathBuf, Listed>,
    walk: u64,
    cursor: usize,
}

#[derive(Debug)]
struct Listed {
    state: Option<State>,
    names: Vec<String>,
    walk: u64,
}

type State = (u64, i64, i64);

impl Watch {
    /// A walk is due. Nothing is allocated.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.dirs.is_empty() || self.dirs.iter().any(|(d, l)| l.state.is_none() || state(d) != l.state)
    }

    /// A group below this directory is gone.
    pub fn forget(&mut self, dir: &Path) {
        if let Some(l) = self.dirs.get_mut(dir) {
            l.state = None;
        }
    }

    /// Looks into the next directory, whatever its stamp says.
    pub fn doubt(&mut self) {
        self.cursor += 1;
        if self.cursor >= self.dirs.len() {
            self.cursor = 0;
        }
        if let Some((dir, l)) = self.dirs.iter_mut().nth(self.cursor)
            && directories(dir) != l.names
        {
            l.state = None;
        }
    }

    /// Directories that are watched.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.dirs.keys().map(PathBuf::as_path)
    }

    /// Number of the last walk: the directories are the same as long as it is.
    #[must_use]
    pub fn walks(&self) -> u64 {
        self.walk
    }

    /// How many directories are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dirs.len()
    }

    /// Nothing is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// A walk begins.
    pub(super) fn begin(&mut self) {
        self.walk += 1;
    }

    /// Directories in a directory, in order.
    pub(super) fn names(&mut self, dir: &Path) -> &[String] {
        // Taken before the listing: what comes in between is seen at the next look.
        let now = state(dir);
        let walk = self.walk;
        let fresh =
            self.dirs.get(dir).is_some_and(|l| l.state.is_some() && l.state == now && !self.lost(dir, l));
        if !fresh {
            self.dirs.insert(dir.to_owned(), Listed { state: now, names: directories(dir), walk });
        }
        self.dirs.get_mut(dir).map_or(&[], |l| {
            l.walk = walk;
            &l.names
        })
    }

    /// A directory that was listed below this one is no more: another may stand in its place, and the count is the same.
    fn lost(&self, dir: &Path, listed: &Listed) -> bool {
        listed.names.iter().map(|n| dir.join(n)).any(|d| self.dirs.contains_key(&d) && state(&d).is_none())
    }

    /// The walk ended: what it did not come by is gone.
    pub(super) fn end(&mut self) {
        let walk = self.walk;
        self.dirs.retain(|_, l| l.walk == walk);
    }
}

fn state(dir: &Path) -> Option<State> {
    let m = fs::symlink_metadata(dir).ok()?;
    Some((m.nlink(), m.mtime(), m.mtime_nsec()))
}

fn directories(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's file system of groups leaves the time of a directory as it is, and its count is that of before.
    #[test]
    fn one_that_takes_another_s_place_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let pods = root.path().join("burstable");
        for pod in ["pod-a", "pod-b"] {
            fs::create_dir_all(pods.join(pod)).unwrap();
        }
        let mut watch = Watch::default();
        let walk = |watch: &mut Watch| {
            watch.begin();
            let names = watch.names(&pods).to_vec();
            for name in &names {
                watch.names(&pods.join(name));
            }
            watch.end();
            names
        };
        assert_eq!(walk(&mut watch), ["pod-a", "pod-b"]);
        assert!(!watch.changed());
        let before = fs::metadata(&pods).unwrap();
        fs::remove_dir(pods.join("pod-a")).unwrap();
        fs::create_dir(pods.join("pod-c")).unwrap();
        let times = fs::FileTimes::new().set_modified(before.modified().unwrap());
        fs::File::open(&pods).unwrap().set_times(times).unwrap();
        assert_eq!(state(&pods), Some((before.nlink(), before.mtime(), before.mtime_nsec())));
        assert!(watch.changed(), "what was listed is gone");
        assert_eq!(walk(&mut watch), ["pod-b", "pod-c"]);
    }
}
