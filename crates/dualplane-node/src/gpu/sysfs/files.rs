//! A folder of `/sys`: small files with a number or some words each.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

/// The longest file that is read: bad pages of a card, a line of 30 bytes each.
const MAX_FILE: u64 = 64 << 10;
/// Entries of a folder.
const MAX_NAMES: usize = 4096;

#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn below(&self, name: &str) -> Self {
        Self(self.0.join(name))
    }

    /// Names in it, in order.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().filter_map(Result::ok).take(MAX_NAMES);
        let mut all: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        all.sort();
        all
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        let mut bytes = Vec::new();
        fs::File::open(self.0.join(name)).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.trim().parse().ok()
    }

    /// The same, narrower.
    pub(super) fn small(&self, name: &str) -> Option<u32> {
        self.number(name).and_then(|n| u32::try_from(n).ok())
    }
}
