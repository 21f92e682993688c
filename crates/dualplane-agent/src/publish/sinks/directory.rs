//! A folder: a network file system, a mounted bucket, a disk that is collected by something else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::{Sink, SinkError};
use crate::incident::{BUNDLE_SUFFIX, Summary, copy_whole, is_id, write_whole};
use crate::publish::stable_hash;

/// Puts `ID.tar.zst`, then `ID.json`, each as a whole: where the summary is, the bundle is.
#[derive(Debug)]
pub struct Directory {
    dir: PathBuf,
    name: String,
}

impl Directory {
    /// The folder is made at the first delivery if its parent is there: a mount that is missing is not filled in.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        let name = format!("dir-{:08x}", stable_hash(&[&dir.to_string_lossy()]) >> 32);
        Self { dir: dir.to_owned(), name }
    }

    fn put(&self, summary: &Summary, bundle: &Path) -> io::Result<()> {
        if !self.dir.is_dir() {
            fs::create_dir(&self.dir)?;
        }
        copy_whole(bundle, &self.dir.join(format!("{}{BUNDLE_SUFFIX}", summary.id)))?;
        write_whole(&self.dir.join(format!("{}.json", summary.id)), &summary.to_line())
    }
}

impl Sink for Directory {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&mut self) -> Result<(), String> {
        let parent = self.dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let there = if self.dir.exists() { &self.dir } else { parent };
        let may = rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK);
        may.map_err(|e| format!("{}: {}", there.display(), io::Error::from(e)))
    }

    fn deliver(&mut self, summary: &Summary, bundle: &Path) -> Result<(), SinkError> {
        if !is_id(&summary.id) {
            return Err(SinkError::Refused("its ID is not a valid file name".into()));
        }
        self.put(summary, bundle).map_err(|e| SinkError::Later(format!("{}: {e}", self.dir.display())))
    }
}
