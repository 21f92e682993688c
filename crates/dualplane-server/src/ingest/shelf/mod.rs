//! Where whole bundles are kept: a folder of this machine, or a bucket of a store of objects.

mod bucket;
mod cache;
mod folder;
mod place;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;

pub use bucket::Bucket;
pub use folder::Folder;
pub use place::Place;

/// An answer that takes its time.
pub type Answer<'a, T> = BoxFuture<'a, io::Result<T>>;

/// Keeps bundles by the names of their incidents.
pub trait Shelf: Send + Sync + fmt::Debug {
    /// Takes a file over. When this answers, the bundle survives whatever happens to this machine that the shelf survives.
    ///
    /// # Errors
    ///
    /// It is not kept; the file is still there.
    fn keep<'a>(&'a self, file: &'a Path, id: &'a str) -> Answer<'a, ()>;

    /// Where it lies on this machine now. `sum`: its SHA-256 in hex.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`]: there is none. Anything else: it cannot be had now, or is another.
    fn here<'a>(&'a self, id: &'a str, sum: &'a str) -> Answer<'a, PathBuf>;

    /// Removes it; where there is none, nothing.
    ///
    /// # Errors
    ///
    /// It may still be there.
    fn remove<'a>(&'a self, id: &'a str) -> Answer<'a, ()>;
}
