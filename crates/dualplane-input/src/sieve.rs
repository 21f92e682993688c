//! Reads large logs through the core's sifter: a file of the disk by all processors, a stream by one.
//!
//! What is held at a time: a block for each thread and what the sifter keeps, whatever the size of the log.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::sync_channel;
use std::thread;

use dualplane_core::knowledge::Knowledge;
use dualplane_core::sift::{AFTER, BEFORE, BLOCK, Feed, Merge, Part, Sifted, Sifter, ends};

/// More threads would wait for the disk and hold more blocks.
const MAX_THREADS: usize = 8;
/// Bytes of a stream that are read at a time.
const PIECE: u64 = 128 << 10;

/// The sifter for a knowledge, built when the first large log is met.
#[derive(Debug)]
pub struct Sieve<'k> {
    knowledge: &'k Knowledge,
    built: OnceCell<Option<Sifter>>,
}

impl<'k> Sieve<'k> {
    /// One that has met no large log yet.
    #[must_use]
    pub fn new(knowledge: &'k Knowledge) -> Self {
        Self { knowledge, built: OnceCell::new() }
    }

    /// `None` where the words of the knowledge do not compile: then nothing is sifted.
    pub(super) fn get(&self) -> Option<&Sifter> {
        self.built.get_or_init(|| Sifter::new(self.knowledge).ok()).as_ref()
    }
}

/// Sifts a file of the disk. With an error comes what was read before it.
pub(super) fn file(sifter: &Sifter, file: &File, size: u64, budget: usize) -> (Sifted, Option<io::Error>) {
    let blocks = size.div_ceil(BLOCK as u64);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS) as u64;
    let threads = threads.min(blocks).max(1);
    let mut merge = Merge::new(budget);
    let mut error = None;
    thread::scope(|scope| {
        // Each thread takes every n-th block and runs at most two ahead, so that parts come in order and none pile up.
        let lanes: Vec<_> = (0..threads)
            .map(|lane| {
                let (send, receive) = sync_channel(1);
                let work = move || {
                    let mut buffer = Vec::new();
                    for block in (lane..blocks).step_by(threads as usize) {
                        let part = block_part(sifter, file, size, block, budget, &mut buffer);
                        let failed = part.is_err();
                        if send.send(part).is_err() || failed {
                            return;
                        }
                    }
                };
                // A container with few processes or little memory left may have no further thread: its blocks are read here.
                thread::Builder::new().spawn_scoped(scope, work).ok().map(|_| receive)
            })
            .collect();
        let mut buffer = Vec::new();
        for (block, lane) in (0..blocks).zip(lanes.iter().cycle()) {
            let part = match lane {
                Some(lane) => lane.recv(),
                None => Ok(block_part(sifter, file, size, block, budget, &mut buffer)),
            };
            match part {
                Ok(Ok(part)) => merge.push(part),
                Ok(Err(e)) => {
                    error = Some(e);
                    break;
                }
                Err(_) => break,
            }
        }
    });
    (merge.finish(), error)
}

fn block_part(
    sifter: &Sifter,
    file: &File,
    size: u64,
    block: u64,
    budget: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<Part> {
    let start = block * BLOCK as u64;
    let from = start.saturating_sub(BEFORE as u64);
    buffer.resize(BEFORE + BLOCK + AFTER, 0);
    let read = read_at(file, from, buffer)?;
    let region = buffer.get(..read).unwrap_or_default();
    let own = offset(start, from)..offset((start + BLOCK as u64).min(size), from).min(read);
    let ends = ends(budget) as u64;
    let head = offset(0, from)..offset(ends, from).min(own.end);
    let tail = offset(size.saturating_sub(ends).max(start), from)..own.end;
    Ok(sifter.part(region, own, &[head, tail]))
}

fn offset(at: u64, from: u64) -> usize {
    usize::try_from(at.saturating_sub(from)).unwrap_or(usize::MAX)
}

#[cfg(unix)]
fn read_at(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|r| !r.is_empty()) {
        match file.read_at(rest, at + read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(read)
}

#[cfg(windows)]
fn read_at(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    use std::os::windows::fs::FileExt;
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|r| !r.is_empty()) {
        match file.seek_read(rest, at + read as u64)? {
            0 => break,
            n => read += n,
        }
    }
    Ok(read)
}

/// Sifts a stream that begins with `head`. With an error comes what was read before it.
pub(super) fn stream(
    sifter: &Sifter,
    head: Vec<u8>,
    from: &mut dyn Read,
    budget: usize,
) -> (Sifted, Option<io::Error>) {
    let mut feed = Feed::new(sifter, budget);
    feed.push(&head);
    drop(head);
    let mut piece = Vec::with_capacity(PIECE as usize);
    loop {
        piece.clear();
        let error = from.take(PIECE).read_to_end(&mut piece).err();
        feed.push(&piece);
        if error.is_some() || piece.is_empty() {
            return (feed.finish(), error);
        }
    }
}
