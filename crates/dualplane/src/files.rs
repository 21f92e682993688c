//! Files that are written whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes beside the name and renames, so that a name never stands for half a file. Only its owner may read it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one; what it leads to is written.
    let led = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let path = led.as_path();
    let name = path.file_name().ok_or_else(|| io::Error::other("it does not name a file"))?.to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let written = (|| {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = options.open(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    // The new name is in the folder, which is written apart from the file. Where folders cannot be opened, nothing is
    // lost but certainty after a power failure.
    #[cfg(unix)]
    if written.is_ok()
        && let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty())
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
    written
}
