//! The segment that is written: what is encoded and not written yet, and the file it goes to.
//!
//! Room is asked of the file system ahead of the records, so that a disk that others fill does not stop the segment that
//! is begun.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dualplane_node::clock::Moment;
use dualplane_node::sample::Record;
use rustix::fs::{FallocateFlags, fallocate};

use super::block::{self, Kind};
use super::delta::Encoder;
use super::files::Files;
use super::note::Note;
use super::segment::{Header, Range};
use super::table::Table;
use super::{RingCounts, SEGMENT_TIME};

/// What file systems allocate at once.
pub(super) const PAGE: u64 = 4096;
/// Bounds of a segment's size: of a small ring many are there still, of a large one none takes long to read.
const SIZE: (u64, u64) = (16 << 10, 1 << 20);
/// Segments of a ring, at least.
const SEGMENTS: u64 = 16;

/// A segment that is not all written.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) number: u64,
    path: PathBuf,
    begun: Moment,
    encoder: Encoder,
    range: Option<Range>,
    /// It should not become larger.
    most: u64,
    /// Room that is asked for at once.
    ahead: u64,
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
    /// Bytes behind those.
    unwritten: Vec<u8>,
    /// Bytes that count for the budget.
    allocated: u64,
    /// Ends of the blocks that are not written, and their records.
    blocks: VecDeque<(u64, u64)>,
}

impl Open {
    /// `size`: of the segment before, as a guess.
    pub(super) fn new(number: u64, path: PathBuf, begun: Moment, size: u64, budget: u64) -> Self {
        let most = (budget / SEGMENTS).clamp(SIZE.0, SIZE.1);
        Self {
            number,
            path,
            begun,
            encoder: Encoder::default(),
            range: None,
            most,
            ahead: size.saturating_add(size / 8).clamp(SIZE.0 / 2, most).next_multiple_of(PAGE),
            file: None,
            written: 0,
            unwritten: Vec::new(),
            allocated: 0,
            blocks: VecDeque::new(),
        }
    }

    /// Puts down header and table. Where the table alone is large, the segment may be so too.
    pub(super) fn begin(&mut self, header: &Header, table: &Table) {
        header.put(&mut self.unwritten);
        block::put(&mut self.unwritten, Kind::Table, |o| table.put(o));
        self.most = self.most.max(self.size().saturating_mul(2));
    }

    /// The next segment should begin.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        now.since(self.begun) >= SEGMENT_TIME || self.size() >= self.most || self.encoder.is_full()
    }

    pub(super) fn put_notes(&mut self, notes: &[Note]) {
        if !notes.is_empty() {
            block::put(&mut self.unwritten, Kind::Notes, |o| notes.iter().for_each(|n| n.put(o)));
            self.blocks.push_back((self.size(), 0));
        }
    }

    /// Returns how many records did not fit into a segment.
    pub(super) fn put_records(&mut self, records: &[Record]) -> u64 {
        let mut left_out = 0;
        if !records.is_empty() {
            self.range = Range::with(self.range, records);
            let encoder = &mut self.encoder;
            block::put(&mut self.unwritten, Kind::Records, |o| left_out = encoder.put(records, o));
            self.blocks.push_back((self.size(), records.len() as u64 - left_out));
        }
        left_out
    }

    /// Writes what is not written. What was written of it on an error stays so.
    pub(super) fn write(&mut self, files: &mut Files, counts: &mut RingCounts) -> io::Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(create(&self.path)?);
        }
        self.reserve(files, counts)?;
        let Some(file) = &self.file else { return Ok(()) };
        let mut done = 0;
        let result = loop {
            let rest = self.unwritten.get(done..).unwrap_or_default();
            if rest.is_empty() {
                break Ok(());
            }
            match file.write_at(rest, self.written + done as u64) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
        };
        self.unwritten.drain(..done);
        self.written += done as u64;
        while self.blocks.front().is_some_and(|(end, _)| *end <= self.written) {
            self.blocks.pop_front();
        }
        self.takes(counted(self.written), files);
        result
    }

    /// Asks for room ahead of a write. Where it is refused, the write itself says whether it fits.
    fn reserve(&mut self, files: &mut Files, counts: &mut RingCounts) -> io::Result<()> {
        let need = counted(self.size());
        let Some(file) = self.file.as_ref().filter(|_| need > self.allocated) else { return Ok(()) };
        // The guess first; where it was too small, in smaller steps. What was just freed is taken before others do.
        let step = if self.allocated == 0 { self.ahead } else { (self.ahead / 8).next_multiple_of(PAGE) };
        let mut want = need.max(self.allocated + step.max(files.take_freed()));
        if files.bytes() + (want - self.allocated) > files.budget() {
            want = need;
        }
        counts.given_up += files.make_room(want - self.allocated)?;
        if room_ahead(file, want - PAGE) {
            self.takes(want, files);
        }
        Ok(())
    }

    /// The file takes so much, or more.
    fn takes(&mut self, bytes: u64, files: &mut Files) {
        files.count(bytes.saturating_sub(self.allocated));
        self.allocated = self.allocated.max(bytes);
    }

    /// Gives back room that was not used, where it is much. Returns what the file takes.
    pub(super) fn finish(&mut self) -> u64 {
        let Some(file) = &self.file else { return 0 };
        give_back(file, self.written).unwrap_or(self.allocated)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// It was begun on the disk.
    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn into_path(self) -> PathBuf {
        self.path
    }

    pub(super) fn range(&self) -> Option<Range> {
        self.range
    }

    pub(super) fn size(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn allocated(&self) -> u64 {
        self.allocated
    }

    pub(super) fn unwritten(&self) -> &[u8] {
        &self.unwritten
    }

    pub(super) fn unwritten_records(&self) -> u64 {
        self.blocks.iter().map(|(_, records)| records).sum()
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// What a file of this length takes: whole pages, and one more where it lies in many pieces and the file system must know
/// them, which it decides later.
fn counted(length: u64) -> u64 {
    length.next_multiple_of(PAGE).saturating_add(PAGE)
}

/// Gives back room behind the end of a file, where it is much: it costs milliseconds on ext4. Returns what the file takes.
pub(super) fn give_back(file: &File, length: u64) -> io::Result<u64> {
    let blocks = |file: &File| Ok::<_, io::Error>(file.metadata()?.blocks().saturating_mul(512));
    if blocks(file)? > counted(length + length / 4) {
        // A failure leaves it allocated, and counted.
        let _ = file.set_len(length);
    }
    Ok(blocks(file)?.max(counted(length)))
}

/// Asks for room without making the file longer. `false` where it is refused or not known.
fn room_ahead(file: &File, bytes: u64) -> bool {
    fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes).is_ok()
}
