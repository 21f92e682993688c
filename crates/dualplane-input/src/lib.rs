//! Reads a TARGET from the file system: which files belong to which incident, unpacked in memory and within bounds.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod archive;
mod bytes;
mod file;
mod form;
mod group;
mod limits;
mod names;
mod pile;
mod sieve;
mod stream;
mod tar;
mod walk;
mod zip;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dualplane_core::evidence::{Gap, RawFile};

use self::archive::Held;
use self::limits::Room;
use self::pile::{Content, Pile};
pub use self::sieve::Sieve;

/// Why a target could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It is not there or cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Path as given.
        path: PathBuf,
        /// Reason of the system.
        source: io::Error,
    },
    /// Reading it could wait for ever.
    #[error("{path} is {what}, not a file or a directory")]
    NotAFile {
        /// Path as given.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
}

/// The files of one incident.
#[derive(Debug, Default)]
pub struct Incident {
    /// Name for reports.
    pub name: String,
    /// Files.
    pub files: Vec<RawFile>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

impl Incident {
    /// Bytes held so far.
    fn held(&self) -> u64 {
        self.files.iter().map(|f| f.bytes.len() as u64).sum()
    }
}

/// Reads all targets: each directory or archive gives one incident or several, all single files together one.
///
/// # Errors
/// Where a target is not there, may not be read, or is no file. What is wrong inside of a target is a gap.
pub fn read(targets: &[PathBuf], sieve: &Sieve<'_>) -> Result<Vec<Incident>, InputError> {
    let sizes = targets.iter().filter_map(|t| fs::metadata(t).ok()).filter(fs::Metadata::is_file);
    let room = Room::of(sizes.map(|m| m.len()).collect());
    let mut incidents = Vec::new();
    let mut single = Incident::default();
    let mut seen = BTreeSet::new();
    let mut again = Vec::new();
    for path in targets {
        let failed = |source| InputError::Unreadable { path: path.clone(), source };
        // One file under two spellings is one piece of evidence. What cannot be resolved (a pipe) is read as it is given.
        if path.as_os_str() != "-" && !is_own_descriptor(path) {
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            if !seen.insert(whole) {
                again.push(gap(&path.display().to_string(), "it was given twice and read once".into()));
                continue;
            }
        }
        if path.as_os_str() == "-" {
            stream("stdin", &mut io::stdin().lock(), &mut single, &mut incidents, sieve);
            continue;
        }
        let name = base_name(path);
        let kind = fs::metadata(path).map_err(failed)?.file_type();
        if kind.is_dir() {
            let mut pile = Pile::new(sieve);
            walk::walk(path, "", 0, &mut pile).map_err(failed)?;
            incidents.extend(group::incidents(pile, &directory_name(path)));
        } else if is_own_descriptor(path) {
            let mut f = fs::File::open(path).map_err(failed)?;
            stream(&unique(name, &single.files), &mut f, &mut single, &mut incidents, sieve);
        } else if !kind.is_file() {
            // Opening a pipe that nobody writes to would wait for ever.
            return Err(InputError::NotAFile { path: path.clone(), what: what_kind(kind) });
        } else if walk::is_packed(path) {
            let mut pile = Pile::new(sieve);
            let held = pile.unpack_file(&name, path).map_err(failed)?;
            unpacked(pile, held, &name, &mut single, &mut incidents);
        } else {
            file::read(path, &unique(name, &single.files), &mut single, sieve, room).map_err(failed)?;
        }
    }
    if !single.files.is_empty() || !single.gaps.is_empty() {
        single.name = single.files.first().map_or_else(|| "files".into(), |f| f.name.clone());
        incidents.push(single);
    }
    if let Some(first) = incidents.first_mut() {
        first.gaps.extend(again);
    }
    Ok(incidents)
}

/// Unpacks what `fuzz/` made up, as if it came through a pipe; how many files lay in it.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
#[must_use]
pub fn unpack(bytes: &[u8], sieve: &Sieve<'_>) -> usize {
    let (mut single, mut incidents) = (Incident::default(), Vec::new());
    stream("f", &mut io::Cursor::new(bytes), &mut single, &mut incidents, sieve);
    single.files.len() + incidents.iter().map(|i| i.files.len()).sum::<usize>()
}

/// Standard input, or a pipe.
fn stream(
    name: &str,
    from: &mut dyn Read,
    single: &mut Incident,
    incidents: &mut Vec<Incident>,
    sieve: &Sieve<'_>,
) {
    let mut pile = Pile::new(sieve);
    let held = pile.feed(name, from, 0);
    unpacked(pile, held, name, single, incidents);
}

/// An archive is like a directory of its content, a compressed file like the file.
fn unpacked(
    mut pile: Pile<'_>,
    held: Held,
    name: &str,
    single: &mut Incident,
    incidents: &mut Vec<Incident>,
) {
    if held == Held::Archive {
        let stem = names::stem(name);
        pile.strip(&format!("{stem}/"));
        incidents.extend(group::incidents(pile, &stem));
        return;
    }
    let (files, gaps) = pile.take();
    single.gaps.extend(gaps);
    for (name, content) in files {
        let name = unique(name, &single.files);
        match content {
            Content::Bytes(bytes) => group::unpacked(RawFile::new(name, bytes), single),
            Content::Sifted(sifted) => group::unpacked(RawFile::sifted(name, sifted), single),
            Content::Path(_) => {}
        }
    }
}

/// Two files of one name from different folders keep apart.
fn unique(name: String, files: &[RawFile]) -> String {
    let taken = |n: &str| files.iter().any(|f| f.name == n);
    if !taken(&name) {
        return name;
    }
    (2..).map(|i| format!("{i}/{name}")).find(|n| !taken(n)).unwrap_or(name)
}

fn base_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

fn directory_name(path: &Path) -> String {
    path.canonicalize()
        .ok()
        .and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()))
        .unwrap_or_else(|| path.display().to_string())
}

/// `<(kubectl logs …)` of a shell, or `/dev/stdin`.
fn is_own_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || ["/dev/fd", "/proc/self/fd"].iter().any(|dir| path.parent() == Some(Path::new(dir)))
}

fn what_kind(kind: fs::FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a named pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    let _ = kind;
    "a device"
}

fn gap(what: &str, why: String) -> Gap {
    Gap { what: what.to_owned(), why, command: None }
}
