//! Copies head and tail of an instance's log, while the kubelet may rotate, pack or remove it.
//!
//! All files are opened first: what is open can be renamed or removed and still be read. If the folder looks different
//! afterwards, a rotation fell in between, and they are opened anew. A file that turns up under two names is read once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;

use super::folders::{Segment, segments};

/// Rotations that may fall into one copy: one takes the kubelet seconds, opening microseconds.
const TRIES: usize = 5;
/// Bytes that are unpacked of one packed file to find its tail.
const MAX_UNPACKED: u64 = 256 << 20;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyLimits {
    /// Bytes of the beginning: flags, version, model, the pool's size.
    pub head: u64,
    /// Bytes of the end: the death.
    pub tail: u64,
}

impl Default for CopyLimits {
    /// vLLM and SGLang are through with their start-up after some 100 KiB; the last words with all tracebacks of eight
    /// ranks are below 1 MiB.
    fn default() -> Self {
        Self { head: 256 << 10, tail: 1 << 20 }
    }
}

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Bytes written.
    pub bytes: u64,
    /// Bytes between head and tail that were left out.
    pub left_out: u64,
    /// Files that it came from.
    pub files: usize,
    /// Files that could not be read.
    pub unreadable: usize,
}

/// The files of one instance's log, open: what is open can be removed and still be read.
#[derive(Debug)]
pub struct OpenLog {
    parts: Vec<Part>,
    unreadable: usize,
}

/// Opens the log of one instance, which takes microseconds. What is packed is not unpacked yet.
#[must_use]
pub fn open(folder: &Path, restart: u32) -> OpenLog {
    let (parts, unreadable) = open_all(folder, restart);
    OpenLog { parts, unreadable }
}

/// Copies the log of one instance into `out`: all of it where it fits, else head and tail in whole lines.
///
/// # Errors
/// `out` cannot be written to. A log that cannot be read is told in [`Copied`].
pub fn copy(folder: &Path, restart: u32, limits: CopyLimits, out: &mut impl Write) -> io::Result<Copied> {
    open(folder, restart).copy(limits, out)
}

impl OpenLog {
    /// There is nothing to read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How long ago its last line was written; `None` where nothing is open or the clock went back.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        let written = self.parts.iter().filter_map(|p| p.file.metadata().ok()?.modified().ok()).max()?;
        written.elapsed().ok()
    }

    /// Copies it: all of it where it fits, else head and tail in whole lines.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn copy(self, limits: CopyLimits, out: &mut impl Write) -> io::Result<Copied> {
        let Self { mut parts, unreadable } = self;
        let mut done = Copied { files: parts.len(), unreadable, ..Copied::default() };
        parts.iter_mut().for_each(Part::measure);
        let total: u64 = parts.iter().map(|p| p.length).sum();
        let whole = total <= limits.head.saturating_add(limits.tail);
        let mut head_left = if whole { total } else { limits.head };
        let mut position = 0;
        let tail_from = if whole { total } else { total - limits.tail };
        for mut part in parts {
            let end = position + part.length;
            if head_left > 0 {
                let take = part.length.min(head_left);
                let bytes = part.range(0, take);
                let cut = if take < part.length { whole_lines(&bytes) } else { bytes.len() };
                let bytes = bytes.get(..cut).unwrap_or_default();
                out.write_all(bytes)?;
                done.bytes += bytes.len() as u64;
                head_left = if take < part.length { 0 } else { head_left - take };
            }
            if end > tail_from {
                let from = tail_from.saturating_sub(position);
                let bytes = part.range(from, part.length - from);
                // In the middle of a line: that line is left out. At a file's beginning all is whole.
                let skip =
                    if from == 0 { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(0, |i| i + 1) };
                let bytes = bytes.get(skip..).unwrap_or_default();
                out.write_all(bytes)?;
                done.bytes += bytes.len() as u64;
            }
            position = end;
        }
        done.left_out = total.saturating_sub(done.bytes);
        Ok(done)
    }
}

fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1)
}

/// A file of the log, open.
#[derive(Debug)]
struct Part {
    file: File,
    gzip: bool,
    /// Plain bytes; of a packed file what came out when it was counted.
    length: u64,
}

impl Part {
    /// Finds its length. What a living instance writes from now on is not of the copy.
    fn measure(&mut self) {
        self.length = if self.gzip {
            let mut plain = MultiGzDecoder::new(&self.file).take(MAX_UNPACKED);
            io::copy(&mut plain, &mut io::sink()).unwrap_or_default()
        } else {
            self.file.metadata().map_or(0, |m| m.len())
        };
    }

    fn range(&mut self, from: u64, length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(at) = self.file.seek(SeekFrom::Start(if self.gzip { 0 } else { from })) else { return bytes };
        let _ = if self.gzip && at == 0 {
            let mut plain = MultiGzDecoder::new(&self.file);
            let _ = io::copy(&mut (&mut plain).take(from), &mut io::sink());
            plain.take(length).read_to_end(&mut bytes)
        } else {
            (&self.file).take(length).read_to_end(&mut bytes)
        };
        bytes
    }
}

fn open_all(folder: &Path, restart: u32) -> (Vec<Part>, usize) {
    let mut last = (Vec::new(), 0);
    for _ in 0..TRIES {
        let listed = segments(folder, restart);
        last = open_listed(&listed);
        if segments(folder, restart) == listed && (last.1 == 0 || listed.is_empty()) {
            break;
        }
    }
    last
}

fn open_listed(listed: &[Segment]) -> (Vec<Part>, usize) {
    let (mut parts, mut inodes, mut unreadable) = (Vec::new(), Vec::new(), 0);
    for s in listed {
        let opened = File::open(&s.path).and_then(|f| Ok((f.metadata()?, f)));
        let Ok((meta, file)) = opened else {
            unreadable += 1;
            continue;
        };
        // Renamed between two names of the list; a link to somewhere else is none of the kubelet's.
        if !meta.is_file() || inodes.contains(&(meta.dev(), meta.ino())) {
            continue;
        }
        inodes.push((meta.dev(), meta.ino()));
        parts.push(Part { file, gzip: s.gzip, length: 0 });
    }
    (parts, unreadable)
}
