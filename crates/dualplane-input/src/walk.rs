//! Walks a directory: which files lie in it, archives unpacked on the way.

use std::fs;
use std::io;
use std::path::Path;

use super::form::{Form, Peeked};
use super::limits::{MAX_DEPTH, MAX_FILES};
use super::names::left_out;
use super::pile::{Content, Pile};

/// Collects files; links are not followed, so that a target cannot lead out of itself or round in circles.
pub(super) fn walk(dir: &Path, prefix: &str, depth: usize, pile: &mut Pile<'_>) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    // By name: which of two files of one name keeps it must not hang on the file system.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if left_out(&name) {
            continue;
        }
        let full = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if depth >= MAX_DEPTH {
                pile.gap(
                    &full,
                    format!(
                        "it is nested more than {MAX_DEPTH} directories deep; pass it \
                separately"
                    ),
                );
            } else if let Err(e) = walk(&entry.path(), &full, depth + 1, pile) {
                pile.gap(&full, format!("cannot read the directory ({e})"));
            }
        } else if !kind.is_file() {
            pile.gap(&full, "it is a link or a device and was not followed");
        } else if !pile.has_room() {
            pile.gap(
                &full,
                format!(
                    "it contains more than {MAX_FILES} files; pass the directory of one \
            incident"
                ),
            );
            return Ok(());
        } else if is_packed(&entry.path()) {
            if let Err(e) = pile.unpack_file(&full, &entry.path()) {
                pile.gap(&full, format!("cannot read it ({e})"));
            }
        } else {
            pile.insert(&full, Content::Path(entry.path()));
        }
    }
    Ok(())
}

/// One that cannot be read is not packed as far as this goes; reading it gives the reason.
pub(super) fn is_packed(path: &Path) -> bool {
    fs::File::open(path).is_ok_and(|mut f| Peeked::new(&mut f).0 != Form::Plain)
}
