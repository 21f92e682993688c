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
    write(path, bytes, true)
}

/// The same over a crash of the program alone: nothing waits for the disk.
///
/// # Errors
/// No space, no right.
pub(super) fn write_renamed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, false)
}

fn write(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(new)?;
        file.write_all(bytes)?;
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
