//! The folder of incidents: `ID.tar.zst` and `ID.json` for each, within a budget.
//!
//! A summary is written before its bundle (`begun`) and after it (`kept`), so that a crash in between is told from a bundle
//! that was never begun. When the budget is used up, ends that nobody called a death go first, then later deaths of a
//! loop, the oldest first, and first deaths last. The summary of what had to go stays: it says what happened, and that a
//! later death of that loop is not its first.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::folder::{BUNDLE_SUFFIX, list};
use super::summary::{Kind, LoopKey, State, Summary};
use super::whole::{write_renamed, write_whole};
use dualplane_base::incident_id::is_id;

/// Summaries that are kept, of dropped bundles as well.
const MAX_SUMMARIES: usize = 4096;

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What the system says.
    #[error("{path}: {source}")]
    Io {
        /// File or folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// All that is there is worth more.
    #[error("first deaths use up the budget of {0} bytes")]
    Budget(u64),
}

impl StoreError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// The disk, or this user's share of it, is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

/// What the folder holds and what it could not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Bundles on the disk.
    pub bundles: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bundles that went for later ones.
    pub dropped: u64,
    /// First deaths among them.
    pub dropped_firsts: u64,
    /// Summaries that cannot be read.
    pub unreadable: u64,
}

/// Incidents of one folder. One process writes; any may read.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    budget: u64,
    index: BTreeMap<String, Summary>,
    /// Deaths of each loop, dropped ones as well.
    loops: HashMap<LoopKey, u64>,
    counts: Counts,
    /// Grows with each change of a summary.
    revision: u64,
}

impl Store {
    /// Opens or makes the folder. What a crash left half-written is removed.
    ///
    /// # Errors
    /// It cannot be made or listed.
    pub fn open(dir: &Path, budget: u64) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(StoreError::at(dir))?;
        let (summaries, unreadable) = list(dir).map_err(StoreError::at(dir))?;
        let counts = Counts { unreadable, ..Counts::default() };
        let mut store = Self {
            dir: dir.to_owned(),
            budget,
            index: BTreeMap::new(),
            loops: HashMap::new(),
            counts,
            revision: 0,
        };
        for mut s in summaries {
            let bytes = fs::metadata(store.bundle(&s.id)).map(|m| m.len()).ok();
            match (s.state, bytes) {
                // Its death is noticed anew: the container is in the ring and gone.
                (State::Begun, None) => {
                    let _ = fs::remove_file(store.summary_path(&s.id));
                    continue;
                }
                (State::Begun, Some(_)) => s.state = State::Kept,
                (State::Kept | State::Judged, None) => s.state = State::Dropped,
                _ => {}
            }
            let told = s.bytes;
            s.bytes = bytes.unwrap_or(0);
            if s.bytes != told {
                // Who reads the folder must find it, too; where there is no room, the next change says it.
                let _ = write_renamed(&store.summary_path(&s.id), &s.to_line());
            }
            store.enter(s);
        }
        for name in names(dir)? {
            let orphan = name.strip_suffix(BUNDLE_SUFFIX).is_some_and(|id| !store.index.contains_key(id));
            // A summary that cannot be read and has no bundle says nothing any more.
            let torn = name
                .strip_suffix(".json")
                .is_some_and(|id| is_id(id) && !store.index.contains_key(id) && !store.bundle(id).exists());
            if orphan || torn || name.ends_with(".new") {
                let _ = fs::remove_file(dir.join(name));
            }
        }
        Ok(store)
    }

    fn enter(&mut self, s: Summary) {
        self.revision += 1;
        if s.bytes > 0 {
            self.counts.bundles += 1;
            self.counts.bytes += s.bytes;
        }
        if s.kind != Kind::Kill {
            *self.loops.entry(s.loop_key()).or_insert(0) += 1;
        }
        self.index.insert(s.id.clone(), s);
    }

    /// Path of a bundle.
    #[must_use]
    pub fn bundle(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}{BUNDLE_SUFFIX}"))
    }

    fn summary_path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// All summaries, oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Summary> {
        self.index.values()
    }

    /// One summary.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Summary> {
        self.index.get(id)
    }

    /// What it holds and what it could not.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Another number means that some summary changed since.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Deaths of a loop so far.
    #[must_use]
    pub fn deaths(&self, key: &LoopKey) -> u64 {
        self.loops.get(key).copied().unwrap_or(0)
    }

    /// Makes the folder again where somebody removed it. The bundles in it are gone: their summaries are written again
    /// and say so. Returns how many bundles were lost.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn remake(&mut self) -> Result<u64, StoreError> {
        fs::create_dir_all(&self.dir).map_err(StoreError::at(&self.dir))?;
        let gone: Vec<String> =
            self.index.keys().filter(|id| !self.summary_path(id).exists()).cloned().collect();
        let mut lost = 0;
        for id in gone {
            let there = self.bundle(&id).exists();
            let Some(s) = self.index.get_mut(&id) else { continue };
            if s.bytes > 0 && !there {
                self.counts.bundles = self.counts.bundles.saturating_sub(1);
                self.counts.bytes = self.counts.bytes.saturating_sub(s.bytes);
                (s.bytes, s.state) = (0, State::Dropped);
                lost += 1;
            }
            let line = s.to_line();
            let _ = write_renamed(&self.summary_path(&id), &line);
        }
        Ok(lost)
    }

    /// Whether its folder is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.dir.is_dir()
    }

    /// Says that a bundle is coming. Not synced: after a crash of the machine the death is noticed anew or is past.
    ///
    /// # Errors
    /// No space, no right.
    pub fn begin(&mut self, summary: Summary) -> Result<(), StoreError> {
        let path = self.summary_path(&summary.id);
        write_renamed(&path, &summary.to_line()).map_err(StoreError::at(&path))?;
        self.enter(summary);
        Ok(())
    }

    /// Writes or replaces a bundle, so that it survives a crash; makes room first.
    ///
    /// # Errors
    /// No space, no right, or all that is there is worth more; the incident stays `begun`, or as it was.
    pub fn keep(&mut self, id: &str, bundle: &[u8]) -> Result<(), StoreError> {
        let size = bundle.len() as u64;
        let before = self.index.get(id).map_or(0, |s| s.bytes);
        self.make_room(size.saturating_sub(before), id);
        if self.counts.bytes.saturating_sub(before).saturating_add(size) > self.budget {
            return Err(StoreError::Budget(self.budget));
        }
        let path = self.bundle(id);
        let mut done = write_whole(&path, bundle).map_err(StoreError::at(&path));
        // The disk is full by others: what is worth less than this goes.
        while done.as_ref().is_err_and(StoreError::is_full) && self.drop_one(id) {
            done = write_whole(&path, bundle).map_err(StoreError::at(&path));
        }
        done?;
        self.counts.bytes = self.counts.bytes.saturating_sub(before) + size;
        self.counts.bundles += u64::from(before == 0);
        if let Some(s) = self.index.get_mut(id) {
            s.bytes = size;
            if s.state == State::Begun {
                s.state = State::Kept;
            }
        }
        Ok(())
    }

    /// Changes a summary and writes it.
    ///
    /// # Errors
    /// No space, no right; the change holds in memory.
    pub fn change(&mut self, id: &str, change: impl FnOnce(&mut Summary)) -> Result<(), StoreError> {
        let Some(s) = self.index.get_mut(id) else { return Ok(()) };
        change(s);
        self.revision += 1;
        let text = s.to_line();
        let path = self.summary_path(id);
        write_whole(&path, &text).map_err(StoreError::at(&path))
    }

    /// Kills inside of a container that lived on.
    pub fn kills_of<'a>(&'a self, container_id: &'a str) -> impl Iterator<Item = &'a Summary> {
        self.all().filter(move |s| {
            s.kind == Kind::Kill && !s.container_id.is_empty() && s.container_id == container_id
        })
    }

    /// Removes the kills that this death tells of.
    pub fn remove_kills_of(&mut self, id: &str) {
        let Some(of) = self.get(id).map(|s| s.container_id.clone()) else { return };
        let kills: Vec<String> = self.kills_of(&of).filter(|s| s.id != id).map(|s| s.id.clone()).collect();
        kills.iter().for_each(|id| self.remove(id));
    }

    /// Removes an incident: it was none.
    pub fn remove(&mut self, id: &str) {
        let _ = fs::remove_file(self.bundle(id));
        let _ = fs::remove_file(self.summary_path(id));
        let Some(s) = self.index.remove(id) else { return };
        self.revision += 1;
        if s.bytes > 0 {
            self.counts.bundles = self.counts.bundles.saturating_sub(1);
            self.counts.bytes = self.counts.bytes.saturating_sub(s.bytes);
        }
        if let Some(n) = self.loops.get_mut(&s.loop_key()).filter(|_| s.kind != Kind::Kill) {
            *n = n.saturating_sub(1);
        }
    }

    fn make_room(&mut self, bytes: u64, keep: &str) {
        while self.counts.bytes.saturating_add(bytes) > self.budget && self.drop_one(keep) {}
        while self.index.len() > MAX_SUMMARIES {
            let gone = self.index.values().find(|s| s.state == State::Dropped && s.id != keep);
            let Some(id) = gone.map(|s| s.id.clone()) else { break };
            self.remove(&id);
        }
    }

    /// Drops the bundle that is worth the least; `false` where none but `keep` is left.
    fn drop_one(&mut self, keep: &str) -> bool {
        let worth = |s: &Summary| match (s.kind, s.first) {
            // One that is not judged yet may be a death.
            (Kind::End, _) if s.state == State::Judged => 0,
            (_, false) => 1,
            (_, true) => 2,
        };
        let own = self.index.get(keep).map_or(2, worth);
        let all = self.index.values().filter(|s| s.bytes > 0 && s.id != keep);
        // The oldest of the least worth; what is worth more than the new one stays.
        let Some(id) = all.filter(|s| worth(s) <= own).min_by_key(|s| worth(s)).map(|s| s.id.clone()) else {
            return false;
        };
        let path = self.bundle(&id);
        if fs::remove_file(&path).is_err() && path.exists() {
            return false;
        }
        if let Some(s) = self.index.get_mut(&id) {
            self.counts.bundles = self.counts.bundles.saturating_sub(1);
            self.counts.bytes = self.counts.bytes.saturating_sub(s.bytes);
            self.counts.dropped += 1;
            self.counts.dropped_firsts += u64::from(s.first && s.kind != Kind::End);
            (s.bytes, s.state) = (0, State::Dropped);
        }
        let _ = self.change(&id, |_| {});
        true
    }
}

fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let entries = fs::read_dir(dir).map_err(StoreError::at(dir))?;
    Ok(entries.filter_map(Result::ok).filter_map(|e| e.file_name().into_string().ok()).collect())
}
