//! Reads a plain file of the disk, within the limits.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use dualplane_core::evidence::RawFile;

use super::limits::{HEAD, MAX_FILE, MAX_TOTAL, cut};
use super::{Incident, gap};

/// Reads a file into the incident.
pub(super) fn read(path: &Path, name: &str, incident: &mut Incident) -> io::Result<()> {
    let mut f = fs::File::open(path)?;
    let size = f.metadata()?.len();
    let so_far = incident.held();
    if so_far + size.min(MAX_FILE) > MAX_TOTAL {
        let why = format!("the files before it already hold {} MiB; pass it by itself", so_far >> 20);
        incident.gaps.push(gap(name, why));
        return Ok(());
    }
    let mut bytes = Vec::new();
    if size <= MAX_FILE {
        // A file may grow while it is read (a live log, /proc): the cap holds regardless.
        f.take(MAX_FILE).read_to_end(&mut bytes)?;
    } else {
        use std::io::{Seek, SeekFrom};
        f.by_ref().take(HEAD).read_to_end(&mut bytes)?;
        f.seek(SeekFrom::Start(size - (MAX_FILE - HEAD)))?;
        // A whole line end, so that the cut does not make one line of two halves.
        bytes.push(b'\n');
        f.take(MAX_FILE - HEAD).read_to_end(&mut bytes)?;
        incident.gaps.push(gap(name, cut(size)));
    }
    incident.files.push(RawFile { name: name.to_owned(), bytes });
    Ok(())
}
