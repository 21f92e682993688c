//! The segments that lie in the folder, of all boots, and their budget.

use dualplane_base::order::Order as _;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use dualplane_node::clock::Moment;

use super::RingCounts;
use super::file::{Open, PAGE, give_back};
use super::segment::{self, Header, Range};

/// A segment that is written no more.
#[derive(Debug)]
pub(super) struct ClosedSegment {
    number: u64,
    pub(super) path: PathBuf,
    /// `None` where it cannot be read.
    pub(super) header: Option<Header>,
    /// `None` where it was not read yet, or holds no records.
    pub(super) range: Option<Range>,
    allocated: u64,
    synced: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    /// Open for its lock, and to bring names to the disk.
    lock: File,
    boot8: String,
    /// Oldest first.
    closed: VecDeque<ClosedSegment>,
    next: u64,
    /// Of all, those that are written included.
    bytes: u64,
    budget: u64,
    /// Pages of the segment that was just given up for a full disk, without the one that is counted beside them.
    freed: u64,
}

impl Files {
    pub(super) fn open(dir: &Path, boot: &str, budget: u64, counts: &mut RingCounts) -> io::Result<Self> {
        let lock = locked(dir)?;
        let mut closed = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(segment::number_of);
            // A file that is gone by now is none.
            let Some((number, meta)) = number.zip(entry.metadata().ok()).filter(|(_, m)| m.is_file()) else {
                continue;
            };
            closed.extend(found(number, entry.path(), &meta, counts));
        }
        closed.order_by_key(|s| s.number);
        let mut files = Self {
            dir: dir.to_owned(),
            lock,
            boot8: boot.to_owned(),
            next: closed.last().map_or(0, |s| s.number + 1),
            bytes: closed.iter().map(|s| s.allocated).sum(),
            closed: closed.into(),
            budget,
            freed: 0,
        };
        counts.given_up += files.make_room(0).unwrap_or_default();
        Ok(files)
    }

    /// Whether the folder that is locked is the one that the path leads to.
    pub(super) fn is_there(&self) -> bool {
        let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let own = self.lock.metadata();
        own.ok().zip(fs::metadata(&self.dir).ok()).is_some_and(|(own, there)| same(&own, &there))
    }

    /// A folder of that path again, empty or not; the segments of before are forgotten.
    pub(super) fn remake(&mut self) -> io::Result<()> {
        self.lock = locked(&self.dir)?;
        self.closed.clear();
        (self.bytes, self.freed) = (0, 0);
        Ok(())
    }

    /// Number and path of a new segment.
    pub(super) fn next(&mut self) -> (u64, PathBuf) {
        let number = self.next;
        self.next += 1;
        (number, self.dir.join(segment::name(&self.boot8, number)))
    }

    /// Takes a segment that is closed, where any of it is on the disk.
    pub(super) fn close(&mut self, mut open: Open, header: &Header) {
        let (counted, allocated) = (open.allocated(), open.finish());
        self.bytes = (self.bytes + allocated).saturating_sub(counted);
        let (number, range) = (open.number, open.range());
        if open.written() == 0 {
            // Nothing refers to an empty file; the next start would delete it.
            let _ = fs::remove_file(open.path());
            self.bytes = self.bytes.saturating_sub(allocated);
            return;
        }
        let path = open.into_path();
        self.closed.push_back(ClosedSegment {
            number,
            path,
            header: Some(header.clone()),
            range,
            allocated,
            synced: false,
        });
    }

    /// Deletes segments of this boot whose records are all older.
    pub(super) fn expire(&mut self, boot: &str, old: Moment) {
        while let Some(at) = self.closed.iter().position(|s| s.is_of(boot)) {
            let expired = self.closed.get(at).is_some_and(|s| s.range.is_none_or(|r| r.to < old));
            if !expired || !self.delete(at) {
                return;
            }
        }
    }

    /// Deletes the oldest ones until so many bytes more are within the budget. Returns how many.
    pub(super) fn make_room(&mut self, bytes: u64) -> io::Result<u64> {
        let mut deleted = 0;
        while self.bytes.saturating_add(bytes) > self.budget {
            if !self.delete_oldest() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            deleted += 1;
        }
        Ok(deleted)
    }

    pub(super) fn delete_oldest(&mut self) -> bool {
        let freed = self.oldest().map_or(0, |s| s.allocated.saturating_sub(PAGE));
        let deleted = self.delete(0);
        self.freed = if deleted { freed } else { 0 };
        deleted
    }

    /// Bytes that were just given up, to be taken again at once; 0 the next time.
    pub(super) fn take_freed(&mut self) -> u64 {
        std::mem::take(&mut self.freed)
    }

    /// Deletes one. `false` where there is none, or it stays.
    fn delete(&mut self, at: usize) -> bool {
        let Some(s) = self.closed.get(at) else { return false };
        match fs::remove_file(&s.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => false,
            _ => {
                self.bytes = self.bytes.saturating_sub(s.allocated);
                self.closed.remove(at);
                true
            }
        }
    }

    /// Counts bytes that a segment that is written takes.
    pub(super) fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub(super) fn sync(&mut self, current: Option<&Open>) -> io::Result<()> {
        for s in self.closed.iter_mut().filter(|s| !s.synced) {
            segment::open(&s.path, true)?.sync_data()?;
            s.synced = true;
        }
        current.map_or(Ok(()), Open::sync)?;
        self.lock.sync_all()
    }

    pub(super) fn oldest(&self) -> Option<&ClosedSegment> {
        self.closed.front()
    }

    pub(super) fn of_boot(&self, boot: &str) -> impl DoubleEndedIterator<Item = &ClosedSegment> {
        self.closed.iter().filter(move |s| s.is_of(boot))
    }

    pub(super) fn of_boot_mut(&mut self, boot: &str) -> impl Iterator<Item = &mut ClosedSegment> {
        self.closed.iter_mut().filter(move |s| s.is_of(boot))
    }

    /// Other boots, the last one first.
    pub(super) fn boots_before(&self, boot: &str) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for h in self.closed.iter().rev().filter_map(|s| s.header.as_ref()) {
            if h.boot != boot && !out.contains(&h.boot) {
                out.push(h.boot.clone());
            }
        }
        out
    }

    pub(super) fn len(&self) -> u64 {
        self.closed.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn budget(&self) -> u64 {
        self.budget
    }
}

/// The folder, made where it is missing, and locked against another agent.
fn locked(dir: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let lock = File::open(dir)?;
    lock.try_lock().map_err(|e| match e {
        fs::TryLockError::WouldBlock => io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("{}: another agent uses this directory; choose a different --state", dir.display()),
        ),
        fs::TryLockError::Error(e) => e,
    })?;
    Ok(lock)
}

impl ClosedSegment {
    fn is_of(&self, boot: &str) -> bool {
        self.header.as_ref().is_some_and(|h| h.boot == boot)
    }
}

/// A segment of an earlier run. An empty file is what a kill leaves between two calls; it is deleted.
fn found(number: u64, path: PathBuf, meta: &fs::Metadata, counts: &mut RingCounts) -> Option<ClosedSegment> {
    if meta.len() == 0 {
        let _ = fs::remove_file(&path);
        return None;
    }
    let header = segment::header_of(&path);
    counts.torn += u64::from(header.is_none());
    // A kill leaves the room that was asked for ahead.
    let given_back = segment::open(&path, true).and_then(|file| give_back(&file, meta.len()));
    let allocated = given_back.unwrap_or_else(|_| meta.blocks().saturating_mul(512).max(meta.len()));
    Some(ClosedSegment { number, path, header, range: None, allocated, synced: false })
}
