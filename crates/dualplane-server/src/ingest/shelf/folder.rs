//! A shelf of this machine.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Answer, Shelf};

/// A folder.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// This one, which is made where it is missing.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// The name was checked: it is no path.
    fn path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.bundle"))
    }
}

/// Disks are waited for where waiting is allowed.
async fn wait<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

impl Shelf for Folder {
    fn keep<'a>(&'a self, file: &'a Path, id: &'a str) -> Answer<'a, ()> {
        let (from, to, folder) = (file.to_owned(), self.path(id), self.0.clone());
        Box::pin(wait(move || {
            File::open(&from)?.sync_all()?;
            fs::rename(&from, to)?;
            File::open(folder)?.sync_all()
        }))
    }

    fn here<'a>(&'a self, id: &'a str, _sum: &'a str) -> Answer<'a, PathBuf> {
        let path = self.path(id);
        Box::pin(wait(move || fs::metadata(&path).map(|_| path)))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        let path = self.path(id);
        Box::pin(wait(move || match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }))
    }
}
