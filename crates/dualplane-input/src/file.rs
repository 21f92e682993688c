//! Reads a plain file of the disk, within the limits.

use std::fs;
use std::io::{self, Read, Seek};
use std::path::Path;

use dualplane_core::evidence::RawFile;
use dualplane_core::sift::{Reading, reading};

use super::limits::{HEAD, MAX_FILE, MAX_TOTAL, Room, cut};
use super::sieve::{self, Sieve};
use super::{Incident, gap};

/// As many bytes as decide how a file is read.
pub(super) const LOOK: u64 = 64 << 10;

/// Reads a file into the incident.
pub(super) fn read(
    path: &Path,
    name: &str,
    incident: &mut Incident,
    sieve: &Sieve<'_>,
    room: Room,
) -> io::Result<()> {
    let mut f = fs::File::open(path)?;
    let size = f.metadata()?.len();
    if size > room.whole {
        let mut head = Vec::new();
        f.by_ref().take(LOOK).read_to_end(&mut head)?;
        match (reading(name, &head), sieve.get()) {
            (Reading::Lines, Some(sifter)) => {
                let (sifted, error) = sieve::file(sifter, &f, size, room.sifted);
                if let Some(e) = error {
                    incident.gaps.push(gap(name, broken(sifted.lines, &e)));
                }
                incident.files.push(RawFile::sifted(name, sifted));
                return Ok(());
            }
            (Reading::Head, _) => {
                incident.files.push(RawFile::new(name, head));
                return Ok(());
            }
            _ => f.rewind()?,
        }
    }
    document(f, size, name, incident)
}

/// The gap of a log that could not be read to its end.
pub(super) fn broken(lines: u64, error: &io::Error) -> String {
    format!("it is truncated after {lines} lines ({error}); the part before that was used")
}

/// Reads a file that is held whole, as far as [`MAX_FILE`] goes.
fn document(mut f: fs::File, size: u64, name: &str, incident: &mut Incident) -> io::Result<()> {
    let so_far = incident.held();
    if so_far + size.min(MAX_FILE) > MAX_TOTAL {
        let why = format!("the files before it already contain {} MiB; pass it separately", so_far >> 20);
        incident.gaps.push(gap(name, why));
        return Ok(());
    }
    let mut bytes = Vec::new();
    if size <= MAX_FILE {
        // A file may grow while it is read (a live log, /proc): the cap holds regardless.
        f.take(MAX_FILE).read_to_end(&mut bytes)?;
    } else {
        use std::io::SeekFrom;
        f.by_ref().take(HEAD).read_to_end(&mut bytes)?;
        f.seek(SeekFrom::Start(size - (MAX_FILE - HEAD)))?;
        // A whole line end, so that the cut does not make one line of two halves.
        bytes.push(b'\n');
        f.take(MAX_FILE - HEAD).read_to_end(&mut bytes)?;
        incident.gaps.push(gap(name, cut(size)));
    }
    incident.files.push(RawFile::new(name, bytes));
    Ok(())
}
