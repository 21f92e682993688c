//! Files that are there as a whole or not at all, over a crash of the machine as well.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes beside, syncs, renames, syncs the folder. What was there before stays if any of it fails.
///
/// # Errors
/// No space, no right.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fill_whole(path, true, |file| file.write_all(bytes))
}

/// The same over a crash of the program alone: nothing waits for the disk.
///
/// # Errors
/// No space, no right.
pub(super) fn write_renamed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fill_whole(path, false, |file| file.write_all(bytes))
}

/// The same as [`write_whole`] with the bytes of another file.
///
/// # Errors
/// No space, no right, or the other file changed meanwhile.
pub fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    fill_whole(to, true, |file| {
        let mut source = File::open(from)?;
        let size = source.metadata()?.len();
        if io::copy(&mut source, file)? == size {
            return Ok(());
        }
        Err(io::Error::other("the file changed while it was copied"))
    })
}

/// A name that a crash left half-written is written over the next time.
fn fill_whole(path: &Path, sync: bool, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(new)?;
        fill(&mut file)?;
        if !sync {
            return fs::rename(new, path);
        }
        file.sync_data()?;
        fs::rename(new, path)?;
        path.parent().map_or(Ok(()), |d| File::open(d)?.sync_all())
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(new);
    })
}
