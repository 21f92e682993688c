//! The ring on the disk: the last minutes of both planes, over restarts of the agent, bounded, the oldest out first.
//!
//! A node that dies, an agent that is killed and a disk that is full must not take along what led to a death. So records
//! are in files before the next round begins (the page cache outlives the process; [`Ring::sync`] is for what must
//! outlive the machine), each file can be read without any other, and what cannot be written waits in memory.
//!
//! `file.rs` is the segment that is written, `files.rs` those that lie there and their budget, `table.rs` what a new
//! segment repeats; `segment.rs`, `block.rs`, `delta.rs`, `note.rs` and `number.rs` are the form; `recovered.rs` and
//! `window.rs` read.

mod block;
mod delta;
mod file;
mod files;
mod look;
mod note;
mod number;
mod recovered;
mod segment;
mod snapshot;
mod table;
mod window;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use dualplane_node::clock::Moment;
use dualplane_node::sample::Record;

pub use look::look;
pub use note::{Engine, Note};
pub use recovered::{Recovered, RecoveredContainer};
pub use snapshot::Snapshot;
pub use window::{ContainerWindow, GpuWindow, ProcessMemory, Window};

use file::Open;
use files::Files;
use segment::{Header, Range};
use table::Table;

/// A segment is closed after so long: what one that cannot be read takes along.
const SEGMENT_TIME: Duration = Duration::from_secs(60);
/// What waits in memory for a disk that is full: at some KB/s most of an hour.
const MEMORY: usize = 4 << 20;
/// History that a full disk takes only as fast as new one comes: one segment for one. Somebody who eats each byte that is
/// freed would else get all.
const FLOOR: Duration = Duration::from_secs(10 * 60);

/// Bounds of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingLimits {
    /// Bytes on the disk, as blocks are allocated.
    pub bytes: u64,
    /// Records of this boot that are older are deleted, by whole segments. Those of earlier boots stay until their bytes
    /// are needed: the last minutes of a node that crashed.
    pub keep: Duration,
}

impl Default for RingLimits {
    /// Measured by `bench/ring.sh`: 110 containers and 8 GPUs need 4 MiB for half an hour where a tenth of them moves, 9 MiB
    /// where all do. Fast rounds are at most 2.7 a second over ten minutes, so that ten minutes fit in any case.
    fn default() -> Self {
        Self { bytes: 24 << 20, keep: Duration::from_secs(30 * 60) }
    }
}

/// How the ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounts {
    /// Bytes on the disk, all boots.
    pub bytes: u64,
    /// Files.
    pub segments: u64,
    /// The oldest record of this boot.
    pub oldest: Option<Moment>,
    /// Files of earlier runs that ended before their bytes did, or had no header.
    pub torn: u64,
    /// Rounds that could not be written at once, for another reason than a full disk.
    pub failed_writes: u64,
    /// Rounds at which the disk was full.
    pub full_disk: u64,
    /// Records that nobody has any more: they waited too long for room.
    pub dropped_records: u64,
    /// Bytes that wait in memory.
    pub waiting_bytes: u64,
    /// Segments deleted for the budget or a full disk, not for their age.
    pub given_up: u64,
}

/// The ring.
#[derive(Debug)]
pub struct Ring {
    limits: RingLimits,
    header: Header,
    files: Files,
    table: Table,
    /// Closed, and not all written; oldest first.
    waiting: VecDeque<Open>,
    current: Option<Open>,
    newest: Moment,
    gave_up_at: Option<Moment>,
    counts: RingCounts,
    trouble: Option<String>,
}

impl Ring {
    /// Opens or begins the ring in a folder of its own, and reads what the runs before left. `boot` is
    /// [`dualplane_node::clock::boot_id`].
    ///
    /// # Errors
    /// The folder cannot be made or read, or another agent writes there.
    pub fn open(dir: &Path, limits: RingLimits, boot: &str) -> io::Result<(Self, Recovered)> {
        let mut counts = RingCounts::default();
        let mut files = Files::open(dir, boot, limits.bytes, &mut counts)?;
        let recovered = recovered::recover(&mut files, boot);
        counts.torn += recovered.torn;
        let ring = Self {
            limits,
            header: Header::new(boot, Moment::now().0),
            files,
            table: Table::default(),
            waiting: VecDeque::new(),
            current: None,
            newest: recovered.last.unwrap_or_default(),
            gave_up_at: None,
            counts,
            trouble: None,
        };
        Ok((ring, recovered))
    }

    /// Keeps a round: notes first, as its records refer to them. Does not wait for the disk; what cannot be written now
    /// is tried again at the next round, and counted.
    pub fn append(&mut self, records: &[Record], notes: &[Note]) {
        if records.is_empty() && notes.is_empty() {
            return;
        }
        let newest = records.iter().map(|r| r.at).max().unwrap_or(self.newest);
        self.newest = self.newest.max(newest);
        if self.current.as_ref().is_none_or(|c| c.is_due(self.newest)) {
            self.rotate();
        }
        notes.iter().for_each(|n| self.table.take(n));
        if let Some(current) = &mut self.current {
            current.put_notes(notes);
            self.counts.dropped_records += current.put_records(records);
        }
        self.write();
    }

    /// Closes the segment and begins the next.
    fn rotate(&mut self) {
        let last = self.current.take();
        let size = last.as_ref().map_or(0, Open::size);
        if let Some(last) = last {
            self.waiting.push_back(last);
        }
        let newest = self.newest;
        let old =
            Moment(newest.0.saturating_sub(u64::try_from(self.limits.keep.as_nanos()).unwrap_or(u64::MAX)));
        self.files.expire(&self.header.boot, old);
        let (number, path) = self.files.next();
        let mut next = Open::new(number, path, newest, size, self.limits.bytes);
        next.begin(&self.header, &self.table);
        self.current = Some(next);
    }

    fn write(&mut self) {
        let mut full = false;
        self.trouble = None;
        while let Err(e) = self.try_write() {
            self.trouble = Some(e.to_string());
            if !is_full(&e) {
                self.counts.failed_writes += 1;
                break;
            }
            full = true;
            if !self.give_up_one() {
                break;
            }
        }
        self.counts.full_disk += u64::from(full);
        if self.unwritten() == 0 {
            self.trouble = None;
        }
        while self.unwritten() > MEMORY
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.counts.dropped_records += oldest.unwritten_records();
            self.files.close(oldest, &self.header);
        }
    }

    fn try_write(&mut self) -> io::Result<()> {
        while let Some(oldest) = self.waiting.front_mut() {
            oldest.write(&mut self.files, &mut self.counts)?;
            if let Some(done) = self.waiting.pop_front() {
                self.files.close(done, &self.header);
            }
        }
        self.current.as_mut().map_or(Ok(()), |c| c.write(&mut self.files, &mut self.counts))
    }

    /// Why the last round could not be written; `None` where it could.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Whether its folder is still the one that was opened.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.files.is_there()
    }

    /// Makes the folder again where somebody removed it, and goes on in a new segment. What was written before is gone;
    /// a segment of which nothing was written yet waits on.
    ///
    /// # Errors
    /// The folder cannot be made, or another agent made it first.
    pub fn remake(&mut self) -> io::Result<()> {
        self.files.remake()?;
        // A file without a name takes records that nobody will find.
        self.waiting.retain(|o| !o.has_file());
        self.current = self.current.take().filter(|c| !c.has_file());
        Ok(())
    }

    /// Deletes the oldest segment for room on a full disk, where that is not too dear.
    fn give_up_one(&mut self) -> bool {
        let floor = Moment(self.newest.0.saturating_sub(FLOOR.as_nanos() as u64));
        let cheap = self.files.oldest().is_some_and(|s| {
            s.header.as_ref().is_none_or(|h| h.boot != self.header.boot)
                || s.range.is_none_or(|r| r.to < floor)
        });
        let waited = self.gave_up_at.is_none_or(|at| self.newest.since(at) >= SEGMENT_TIME);
        if !cheap && !waited {
            return false;
        }
        let freed = self.files.delete_oldest();
        self.counts.given_up += u64::from(freed);
        if freed && !cheap {
            self.gave_up_at = Some(self.newest);
        }
        freed
    }

    fn unwritten(&self) -> usize {
        self.waiting.iter().chain(&self.current).map(|o| o.unwritten().len()).sum()
    }

    /// Brings to the disk what is in files, so that it outlives the machine. Takes as long as the disk takes.
    ///
    /// # Errors
    /// The disk refuses, or is full and records still wait in memory.
    pub fn sync(&mut self) -> io::Result<()> {
        let written = self.try_write();
        self.files.sync(self.current.as_ref())?;
        written
    }

    /// All that was recorded from one moment of this boot to another, of the containers that are asked for by the path of
    /// their cgroup, of the machine, and of all GPUs.
    #[must_use]
    pub fn window(&self, from: Moment, to: Moment, containers: &dyn Fn(&str) -> bool) -> Window {
        self.window_of(&self.header.boot, from, to, containers)
    }

    /// [`Self::window`] of any boot that is still kept. Moments are of that boot.
    #[must_use]
    pub fn window_of(
        &self,
        boot: &str,
        from: Moment,
        to: Moment,
        containers: &dyn Fn(&str) -> bool,
    ) -> Window {
        let mut reader = window::Builder::new(boot, from, to, containers);
        let own = boot == self.header.boot;
        for open in self.current.iter().chain(self.waiting.iter().rev()).filter(|_| own) {
            reader.segment(open.path(), open.range(), open.written(), open.unwritten());
        }
        for s in self.files.of_boot(boot).rev() {
            reader.segment(&s.path, s.range, u64::MAX, &[]);
        }
        reader.finish()
    }

    /// Boots before this one of which something is kept, the last one first.
    #[must_use]
    pub fn earlier_boots(&self) -> Vec<String> {
        self.files.boots_before(&self.header.boot)
    }

    /// The last records of an earlier boot: what led to the crash of the machine. `None` where none can be read.
    #[must_use]
    pub fn end_of(&self, boot: &str, time: Duration, containers: &dyn Fn(&str) -> bool) -> Option<Window> {
        let last = self.files.of_boot(boot).rev().find_map(|s| recovered::range_of(&s.path))?.to;
        let from = Moment(last.0.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
        Some(self.window_of(boot, from, last, containers))
    }

    /// How it is.
    #[must_use]
    pub fn counts(&self) -> RingCounts {
        let open = || self.waiting.iter().chain(&self.current);
        let on_disk = open().filter(|o| o.written() > 0);
        let of_closed = self.files.of_boot(&self.header.boot).filter_map(|s| s.range);
        RingCounts {
            bytes: self.files.bytes(),
            segments: self.files.len() + on_disk.count() as u64,
            oldest: of_closed.chain(open().filter_map(Open::range)).map(|r: Range| r.from).min(),
            waiting_bytes: self.unwritten() as u64,
            ..self.counts
        }
    }
}

/// The disk, or what we may use of it, is full.
fn is_full(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
