//! Harvested templates in files: one per engine, compressed, each template with the versions that have it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::DevError;

/// No harvest is larger than this when unpacked: a file that is, is none.
const LARGEST: u64 = 64 << 20;

/// How a message comes out, and its words.
pub(super) type Key = (String, String);

/// Where a template stood last, and which versions have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) place: String,
    pub(super) versions: BTreeSet<String>,
}

/// The templates of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Harvest(pub(super) BTreeMap<Key, Row>);

impl Harvest {
    /// All versions, the newest last.
    pub(super) fn versions(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.0.values().flat_map(|r| &r.versions).collect();
        let mut all: Vec<String> = all.into_iter().cloned().collect();
        let numbers = |v: &str| {
            v.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok()).collect::<Vec<_>>()
        };
        all.sort_by_key(|v| numbers(v));
        all
    }

    /// Reads a file; one that is not there holds nothing.
    pub(super) fn read(path: &Path) -> Result<Self, DevError> {
        let unreadable = |source| DevError::Unreadable { path: path.into(), source };
        if !path.exists() {
            return Ok(Self::default());
        }
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        GzDecoder::new(file).take(LARGEST).read_to_string(&mut text).map_err(unreadable)?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let row = |line: &str| {
            let mut fields = line.split('\t').map(str::to_owned);
            let key = (fields.next()?, fields.next()?);
            let place = fields.next()?;
            let versions = fields.next()?.split(' ').map(str::to_owned).collect();
            Some((key, Row { place, versions }))
        };
        Self(text.lines().filter_map(row).collect())
    }

    fn written(&self) -> String {
        let line = |((severity, template), row): (&Key, &Row)| {
            let versions: Vec<&str> = row.versions.iter().map(String::as_str).collect();
            format!("{severity}\t{template}\t{}\t{}\n", row.place, versions.join(" "))
        };
        self.0.iter().map(line).collect()
    }

    /// Writes a file, and says how large it is.
    pub(super) fn write(&self, path: &Path) -> Result<usize, DevError> {
        let unwritable = |source| DevError::Unreadable { path: path.into(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(unwritable)?;
        }
        // The header carries no time, so that the same templates give the same file.
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(self.written().as_bytes()).map_err(unwritable)?;
        let bytes = packed.finish().map_err(unwritable)?;
        std::fs::write(path, &bytes).map_err(unwritable)?;
        Ok(bytes.len())
    }

    /// Puts one version's templates in place of what was known of it; returns those that no other version has.
    pub(super) fn replace(&mut self, version: &str, found: BTreeMap<Key, String>) -> Vec<Key> {
        for row in self.0.values_mut() {
            row.versions.remove(version);
        }
        let newest = self.versions().iter().all(|v| {
            let both = Self(BTreeMap::from([(
                Key::default(),
                Row { place: String::new(), versions: BTreeSet::from([v.clone(), version.to_owned()]) },
            )]));
            both.versions().last().is_some_and(|last| last == version)
        });
        let mut fresh = Vec::new();
        for (key, place) in found {
            let row = self
                .0
                .entry(key.clone())
                .or_insert_with(|| Row { place: place.clone(), versions: BTreeSet::new() });
            if row.versions.is_empty() {
                fresh.push(key);
            }
            if newest {
                row.place = place;
            }
            row.versions.insert(version.to_owned());
        }
        self.0.retain(|_, row| !row.versions.is_empty());
        fresh
    }
}

/// All harvests of a folder, by engine.
pub(super) fn all(folder: &Path) -> Result<Vec<(String, Harvest)>, DevError> {
    let unreadable = |source| DevError::Unreadable { path: folder.into(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        files.push(entry.map_err(unreadable)?.path());
    }
    files.sort();
    let mut harvests = Vec::new();
    for file in files {
        let name = file.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".tsv.gz"));
        if let Some(name) = name {
            harvests.push((name.to_owned(), Harvest::read(&file)?));
        }
    }
    Ok(harvests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(templates: &[&str]) -> BTreeMap<Key, String> {
        templates.iter().map(|t| (("raise".to_owned(), (*t).to_owned()), "a.py:1".to_owned())).collect()
    }

    #[test]
    fn a_version_replaces_itself_and_tells_what_is_new() {
        let mut harvest = Harvest::default();
        harvest.replace("0.9.0", found(&["a", "b"]));
        assert_eq!(harvest.replace("0.10.0", found(&["b", "c"])), [("raise".into(), "c".into())]);
        assert_eq!(harvest.versions(), ["0.9.0", "0.10.0"]);
        harvest.replace("0.10.0", found(&["b"]));
        assert_eq!(harvest.0.len(), 2);
        assert_eq!(Harvest::parse(&harvest.written()), harvest);
    }
}
