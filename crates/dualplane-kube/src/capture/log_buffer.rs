//! A log as it comes: kept whole while it is small, sifted by a thread of its own while the rest still comes.
//!
//! What decrypts and what looks at lines would else take turns on one core, and other pods' answers would wait for both.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use dualplane_core::sift::{self, Feed, Sifter};

/// A log up to here is kept whole.
const WHOLE: usize = 2 << 20;
/// Of a larger log so much is kept.
const KEPT_BYTES: usize = 2 << 20;
/// Handed to the thread at once.
const PIECE: usize = 256 << 10;
/// Pieces that wait for the thread. Where it is slower than the network, the network waits.
const WAITING: usize = 16;

/// A log as it comes.
pub(super) struct LogBuffer<'s> {
    sifter: Option<&'s Arc<Sifter>>,
    /// All of it, or what the thread has not got yet.
    held: Vec<u8>,
    thread: Option<SiftThread>,
    bytes: u64,
}

struct SiftThread {
    pieces: SyncSender<Vec<u8>>,
    kept: JoinHandle<Vec<u8>>,
}

impl<'s> LogBuffer<'s> {
    pub(super) fn new(sifter: Option<&'s Arc<Sifter>>) -> Self {
        Self { sifter, held: Vec::new(), thread: None, bytes: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What is held of its beginning, while that is all of it.
    pub(super) fn head(&self) -> &[u8] {
        if self.thread.is_none() { &self.held } else { &[] }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.held.extend_from_slice(chunk);
        if let Some(thread) = &self.thread {
            if self.held.len() >= PIECE {
                // A thread that is gone keeps nothing; `finish` tells.
                let _ = thread.pieces.send(std::mem::take(&mut self.held));
            }
        } else if self.held.len() > WHOLE {
            self.thread = self.sifter.and_then(|s| SiftThread::start(Arc::clone(s)));
            match &self.thread {
                Some(thread) => {
                    let _ = thread.pieces.send(std::mem::take(&mut self.held));
                }
                // Without a sifter the tail is what matters.
                None if self.held.len() > WHOLE + KEPT_BYTES => {
                    self.held.drain(..KEPT_BYTES);
                }
                None => {}
            }
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let Some(SiftThread { pieces, kept }) = self.thread else { return self.held };
        let _ = pieces.send(self.held);
        drop(pieces);
        kept.join().unwrap_or_default()
    }
}

impl SiftThread {
    /// `None` where the system gives no thread.
    fn start(sifter: Arc<Sifter>) -> Option<Self> {
        let (pieces, taken): (_, Receiver<Vec<u8>>) = sync_channel(WAITING);
        let work = move || {
            let mut feed = Feed::new(&sifter, KEPT_BYTES);
            taken.iter().for_each(|piece| feed.push(&piece));
            sift::fold(&feed.finish())
        };
        let kept = std::thread::Builder::new().name("sift".into()).spawn(work).ok()?;
        Some(Self { pieces, kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_core::knowledge::Knowledge;

    #[test]
    fn a_large_log_is_sifted_as_if_it_had_come_at_once() {
        let knowledge = Knowledge::embedded().unwrap();
        let sifter = Arc::new(Sifter::new(&knowledge).unwrap());
        let mut log = String::new();
        for i in 0..120_000 {
            log.push_str(&format!(
                "2026-11-21T10:00:00.{i:09}Z INFO 127.0.0.1 - \"POST /v1/completions\" 200\n"
            ));
            if i == 60_000 {
                log.push_str("2026-11-21T10:00:01Z torch.OutOfMemoryError: CUDA out of memory.\n");
            }
        }
        let mut feed = Feed::new(&sifter, KEPT_BYTES);
        feed.push(log.as_bytes());
        let expected = sift::fold(&feed.finish());
        for size in [1000, 65_536, log.len()] {
            let mut buffer = LogBuffer::new(Some(&sifter));
            log.as_bytes().chunks(size).for_each(|c| buffer.push(c));
            assert_eq!(buffer.bytes(), log.len() as u64);
            assert!(buffer.head().is_empty());
            assert!(buffer.finish() == expected, "in pieces of {size}");
        }
        assert!(expected.len() < log.len() / 2 && expected.windows(16).any(|w| w == b"OutOfMemoryError"));
    }

    #[test]
    fn a_small_log_is_kept_as_it_is_and_without_a_sifter_the_tail_is() {
        let mut small = LogBuffer::new(None);
        small.push(b"a\n");
        assert_eq!(small.head(), b"a\n");
        assert_eq!(small.finish(), b"a\n");
        let mut large = LogBuffer::new(None);
        (0..9).for_each(|i| large.push(&vec![b'0' + i; 1 << 20]));
        let kept = large.finish();
        assert!(kept.len() <= WHOLE + KEPT_BYTES && kept.ends_with(b"888"), "{}", kept.len());
    }
}
