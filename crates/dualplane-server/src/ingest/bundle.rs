//! Bundles: they come in pieces, each is checked against what is there, and the whole against its SHA-256; then they go onto a shelf.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::auth::{hex, sha256};
use crate::ingest::shelf::Shelf;

/// Pieces of an upload that nobody continues are removed after this.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// What is not whole, in a folder, and the shelf of what is.
#[derive(Debug, Clone)]
pub struct Bundles {
    shelf: Arc<dyn Shelf>,
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
    /// Parts lie in this folder, whole ones on the shelf.
    ///
    /// # Errors
    ///
    /// The folder cannot be made.
    pub fn open(data: &Path, shelf: Arc<dyn Shelf>) -> io::Result<Self> {
        let it = Self { shelf, parts: data.join("uploads"), busy: Arc::default() };
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

    /// Where the bundle of an incident lies on this machine now; `sum` is its SHA-256.
    ///
    /// # Errors
    ///
    /// As [`Shelf::here`].
    pub async fn here(&self, id: &str, sum: &str) -> io::Result<PathBuf> {
        self.shelf.here(id, sum).await
    }

    /// Makes it a bundle that survives.
    ///
    /// # Errors
    ///
    /// As [`Shelf::keep`].
    pub async fn finish(&self, part: &Part, id: &str) -> io::Result<()> {
        self.shelf.keep(&part.path, id).await
    }

    /// Removes a bundle.
    ///
    /// # Errors
    ///
    /// As [`Shelf::remove`].
    pub async fn remove(&self, id: &str) -> io::Result<()> {
        self.shelf.remove(id).await
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
    use crate::ingest::shelf::Folder;

    #[test]
    fn a_part_belongs_to_one_caller_and_one_request() {
        let home = tempfile::tempdir().unwrap();
        let shelf = Arc::new(Folder::open(home.path().join("whole")).unwrap());
        let bundles = Bundles::open(home.path(), shelf).unwrap();
        let part = bundles.part("a", "x").unwrap();
        assert!(bundles.part("a", "x").is_none());
        let other = bundles.part("b", "x").unwrap();
        part.append(b"abc").unwrap();
        assert_eq!((part.len(), other.len()), (3, 0));
        assert_eq!(part.sum().unwrap(), sha256(b"abc"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(bundles.finish(&part, "x")).unwrap();
        drop(part);
        let here = runtime.block_on(bundles.here("x", &sha256(b"abc"))).unwrap();
        assert_eq!(fs::read(here).unwrap(), b"abc");
        assert!(bundles.part("a", "x").unwrap().is_empty());
    }
}
