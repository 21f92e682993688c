//! Where records come from: the device gives one a read, a pipe or a file gives bytes.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The longest record that the kernel makes is 8 KiB, with its dictionary.
const RECORD: usize = 16 << 10;
/// Bytes that are read of a pipe at once.
const CHUNK: usize = 64 << 10;

/// A source of records.
#[derive(Debug)]
pub enum Source {
    /// `/dev/kmsg`: one record a read, from the oldest that the ring still holds.
    Device(File),
    /// Lines in the same form; for tests, and for a log that somebody else follows.
    Stream(Stream),
}

/// What one read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOutcome<'a> {
    /// A record.
    Record(&'a [u8]),
    /// The ring overwrote what was next; the sequence of the following record says how many.
    Overwritten,
    /// Nothing now.
    Nothing,
}

/// Bytes of a pipe or file, cut into lines.
#[derive(Debug)]
pub struct Stream {
    file: File,
    held: Vec<u8>,
    taken: usize,
    /// The line is longer than a record can be: its rest is passed over.
    skipping: bool,
}

impl Source {
    /// Opens `/dev/kmsg`, without blocking.
    ///
    /// # Errors
    /// It is not there, or the process has no right to read it (`CAP_SYSLOG`).
    pub fn device(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Self::Device(File::from(rustix::fs::open(path, flags, Mode::empty())?)))
    }

    /// Takes a pipe or an open file.
    ///
    /// # Errors
    /// It cannot be made non-blocking.
    pub fn stream(file: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | OFlags::NONBLOCK)?;
        let held = Vec::with_capacity(CHUNK + RECORD);
        Ok(Self::Stream(Stream { file: File::from(file), held, taken: 0, skipping: false }))
    }

    /// Memory for one record of this source.
    pub(super) fn buffer() -> Vec<u8> {
        vec![0; RECORD]
    }

    /// Reads what is there now.
    pub(super) fn read<'b>(&'b mut self, buffer: &'b mut [u8]) -> io::Result<ReadOutcome<'b>> {
        match self {
            Self::Device(file) => match file.read(buffer) {
                Ok(0) => Ok(ReadOutcome::Nothing),
                Ok(n) => Ok(ReadOutcome::Record(buffer.get(..n).unwrap_or_default())),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(ReadOutcome::Nothing),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(ReadOutcome::Nothing),
                // EINVAL: a record larger than the buffer; the kernel passes over it, its number will be missing.
                Err(e) if is(&e, Errno::PIPE) || is(&e, Errno::INVAL) => Ok(ReadOutcome::Overwritten),
                Err(e) => Err(e),
            },
            Self::Stream(stream) => stream.read(),
        }
    }

    /// The descriptor, for waiting on several things at once.
    #[must_use]
    pub fn file(&self) -> &File {
        match self {
            Self::Device(f) => f,
            Self::Stream(s) => &s.file,
        }
    }

    /// Waits until there is something to read. `false` where the time is over.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&self, most: Duration) -> io::Result<bool> {
        let file = self.file();
        let time = Timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        let mut fds = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&time)) {
            Ok(n) => Ok(n > 0),
            Err(Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

fn is(e: &io::Error, errno: Errno) -> bool {
    e.raw_os_error() == Some(errno.raw_os_error())
}

impl Stream {
    fn read(&mut self) -> io::Result<ReadOutcome<'_>> {
        loop {
            let rest = self.held.get(self.taken..).unwrap_or_default();
            if let Some(end) = memchr(rest) {
                let from = self.taken;
                self.taken += end + 1;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                return Ok(ReadOutcome::Record(self.held.get(from..from + end).unwrap_or_default()));
            }
            if rest.len() > RECORD {
                self.skipping = true;
                self.taken = self.held.len();
            }
            self.held.drain(..self.taken);
            self.taken = 0;
            let had = self.held.len();
            self.held.resize(had + CHUNK, 0);
            let n = match self.file.read(self.held.get_mut(had..).unwrap_or_default()) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
                Err(e) => {
                    self.held.truncate(had);
                    return Err(e);
                }
            };
            self.held.truncate(had + n);
            if n == 0 {
                return Ok(ReadOutcome::Nothing);
            }
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|b| *b == b'\n')
}
