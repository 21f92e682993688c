//! Bundles on the disk: they come in pieces, each is checked against what is there, and the whole against its SHA-256.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::auth::{hex, sha256};

/// Pieces of an upload that nobody continues are removed after this.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Folders of bundles and of what is not whole.
#[derive(Debug, Clone)]
pub struct Bundles {
    whole: PathBuf,
    parts: PathBuf,
    busy: Arc<Mutex<BTreeSet<String>>>,
}

/// An upload under way; nobody else writes to it meanwhile.
#[derive(Debug)]
pub struct Part {
    key: String,
    path: PathBuf,
    busy: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl Part {
    /// Bytes that are there.
    #[must_use]
    pub fn len(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |m| m.len())
    }

    /// Nothing is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// The disk is full or broken; what was there stays.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(bytes)
    }

    /// SHA-256 in hex of what is there.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn sum(&self) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let mut sum = ring::digest::Context::new(&ring::digest::SHA256);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n = file.read(&mut buffer)?;
            if n == 0 {
                return Ok(hex(sum.finish().as_ref()));
            }
            sum.update(buffer.get(..n).unwrap_or_default());
        }
    }

    /// Forgets it.
    pub fn discard(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Bundles {
    /// In this folder.
    ///
    /// # Errors
    ///
    /// Folders cannot be made.
    pub fn open(data: &Path) -> io::Result<Self> {
        let it = Self { whole: data.join("bundles"), parts: data.join("uploads"), busy: Arc::default() };
        fs::create_dir_all(&it.whole)?;
        fs::create_dir_all(&it.parts)?;
        Ok(it)
    }

    /// The upload of a caller; `None` while another request writes to it.
    #[must_use]
    pub fn part(&self, caller: &str, id: &str) -> Option<Part> {
        // Two callers who send the same name do not write into one file.
        let key = sha256(format!("{caller}\n{id}").as_bytes());
        let path = self.parts.join(format!("{key}.part"));
        let free = self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        free.then(|| Part { key, path, busy: Arc::clone(&self.busy) })
    }

    /// Where the bundle of an incident lies. The name was checked: it is no path.
    #[must_use]
    pub fn path(&self, id: &str) -> PathBuf {
        self.whole.join(format!("{id}.bundle"))
    }

    /// Makes it a bundle that survives the loss of power.
    ///
    /// # Errors
    ///
    /// The disk is full or broken.
    pub fn finish(&self, part: &Part, id: &str) -> io::Result<()> {
        File::open(&part.path)?.sync_all()?;
        fs::rename(&part.path, self.path(id))?;
        File::open(&self.whole)?.sync_all()
    }

    /// Removes a bundle.
    pub fn remove(&self, id: &str) {
        let _ = fs::remove_file(self.path(id));
    }

    /// Removes pieces that nobody continues.
    pub fn sweep(&self) {
        let old = |m: &fs::Metadata| m.modified().is_ok_and(|t| t.elapsed().is_ok_and(|age| age > STALE));
        for entry in fs::read_dir(&self.parts).into_iter().flatten().flatten() {
            if entry.metadata().is_ok_and(|m| old(&m)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_belongs_to_one_caller_and_one_request() {
        let home = tempfile::tempdir().unwrap();
        let bundles = Bundles::open(home.path()).unwrap();
        let part = bundles.part("a", "x").unwrap();
        assert!(bundles.part("a", "x").is_none());
        let other = bundles.part("b", "x").unwrap();
        part.append(b"abc").unwrap();
        assert_eq!((part.len(), other.len()), (3, 0));
        assert_eq!(part.sum().unwrap(), sha256(b"abc"));
        bundles.finish(&part, "x").unwrap();
        drop(part);
        assert_eq!(fs::read(bundles.path("x")).unwrap(), b"abc");
        assert!(bundles.part("a", "x").unwrap().is_empty());
    }
}
