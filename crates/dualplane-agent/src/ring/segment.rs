//! One segment: a file that can be read without any other. Its name, its header, what its blocks hold.
//!
//! `BOOT8-NNNNNN.seg`: the first digits of the boot's id, and a number that grows over all boots, so that names tell the
//! order. Behind the magic stand blocks: the header, the table of all that lives, then notes and records in turn.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use dualplane_node::clock::Moment;
use dualplane_node::sample::Record;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::block::{self, Kind, Next};
use super::delta::Decoder;
use super::note::Note;

/// The first bytes of each segment.
pub(super) const MAGIC: &[u8; 8] = b"dpring1\n";
/// Version of what stands behind; another one is not read.
const VERSION: u32 = 1;
/// What is read of a file: far above the largest segment that is written.
const MAX_SEGMENT_BYTES: u64 = 16 << 20;

/// Whose segment it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    version: u32,
    /// Moments are of this boot.
    pub(super) boot: String,
    /// Slots are of this run: the moment at which it began.
    pub(super) run: u64,
}

impl Header {
    pub(super) fn new(boot: &str, run: u64) -> Self {
        Self { version: VERSION, boot: boot.to_owned(), run }
    }

    /// Begins a segment.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        block::put(out, Kind::Header, |o| {
            // Of strings and numbers: it cannot fail, and a header that is none would be seen as a torn segment.
            let _ = serde_json::to_writer(o, self);
        });
    }
}

/// The name of a segment's file.
pub(super) fn name(boot: &str, number: u64) -> String {
    let boot8: String = boot.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    format!("{boot8:0>8}-{number:06}.seg")
}

/// The number in such a name; `None` for other files.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let (boot8, number) = name.strip_suffix(".seg")?.split_once('-')?;
    let digits = boot8.len() == 8 && boot8.bytes().all(|b| b.is_ascii_hexdigit());
    // More digits would be a number near the end of all numbers, behind which none could follow.
    (digits && (6..=15).contains(&number.len())).then(|| number.parse().ok()).flatten()
}

/// Opens a segment; a link is not followed.
pub(super) fn open(path: &Path, write: bool) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)
}

/// Reads all of a segment's file.
pub(super) fn load(path: &Path, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    open(path, false)?.take(MAX_SEGMENT_BYTES).read_to_end(into).map(|_| ())
}

/// Reads the header of a segment's file.
pub(super) fn header_of(path: &Path) -> Option<Header> {
    let mut head = Vec::new();
    open(path, false).ok()?.take(4096).read_to_end(&mut head).ok()?;
    Reader::new(&head).map(|r| r.header)
}

/// What a block says.
#[derive(Debug)]
pub(super) enum Item<'a> {
    /// All that holds at the segment's begin.
    Table(Vec<Note>),
    /// What became known.
    Notes(Vec<Note>),
    /// A round.
    Records(&'a [Record]),
}

/// Goes through a segment, up to its end or to the first block that is not whole.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) header: Header,
    rest: &'a [u8],
    decoder: Decoder,
    records: Vec<Record>,
    /// It ended before its bytes did.
    pub(super) torn: bool,
}

impl<'a> Reader<'a> {
    /// `None` where the header cannot be read.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let Next::Block(kind, body, rest) = block::next(rest) else { return None };
        let header: Header = serde_json::from_slice(body).ok()?;
        (kind == Kind::Header as u8 && header.version == VERSION).then(|| Self {
            header,
            rest,
            decoder: Decoder::default(),
            records: Vec::new(),
            torn: false,
        })
    }

    /// The next block that says something.
    pub(super) fn next(&mut self) -> Option<Item<'_>> {
        const TABLE: u8 = Kind::Table as u8;
        const NOTES: u8 = Kind::Notes as u8;
        const RECORDS: u8 = Kind::Records as u8;
        loop {
            let (kind, body) = match block::next(self.rest) {
                Next::End => return None,
                Next::Torn => return self.tear(),
                Next::Block(kind, body, rest) => {
                    self.rest = rest;
                    (kind, body)
                }
            };
            match kind {
                TABLE => return Some(Item::Table(Note::read(body))),
                NOTES => return Some(Item::Notes(Note::read(body))),
                RECORDS => {
                    self.records.clear();
                    return match self.decoder.read(body, &mut self.records) {
                        Some(()) => Some(Item::Records(&self.records)),
                        None => self.tear(),
                    };
                }
                // A later version's.
                _ => {}
            }
        }
    }

    fn tear(&mut self) -> Option<Item<'_>> {
        self.torn = true;
        self.rest = &[];
        None
    }
}

/// From when to when records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: Moment,
    pub(super) to: Moment,
}

impl Range {
    /// With some more records. `None` stays where there are none.
    pub(super) fn with(range: Option<Self>, records: &[Record]) -> Option<Self> {
        records.iter().fold(range, |range, r| {
            let old = range.unwrap_or(Self { from: r.at, to: r.at });
            Some(Self { from: old.from.min(r.at), to: old.to.max(r.at) })
        })
    }

    pub(super) fn meets(self, from: Moment, to: Moment) -> bool {
        self.from <= to && self.to >= from
    }
}
