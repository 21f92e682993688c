//! The end of a large file, kept for the run: who looks for pods reads a node's kernel log, who captures them reads it again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Api, ApiError};

/// Files that are kept; each has some MiB.
const MAX_KEPT: usize = 16;

/// The end of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    /// It begins with a whole line, where more stands before it.
    pub(crate) text: Arc<Vec<u8>>,
    /// Bytes that came.
    pub(crate) bytes: u64,
}

/// Those that were read, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Tails(Mutex<VecDeque<(String, Tail)>>);

impl Tails {
    fn get(&self, path: &str) -> Option<Tail> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(p, _)| p == path).map(|(_, t)| t.clone())
    }

    fn put(&self, path: &str, tail: &Tail) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_KEPT {
            all.pop_front();
        }
        all.push_back((path.to_owned(), tail.clone()));
    }
}

impl Api {
    /// The last `most` bytes of a file, where the server can send only those; else all of it is read. What was read before
    /// in this run is not asked for again.
    ///
    /// # Errors
    /// As [`Api::stream`].
    pub(crate) async fn tail(&self, path: &str, most: usize, time: Duration) -> Result<Tail, ApiError> {
        if let Some(tail) = self.tails.get(path) {
            return Ok(tail);
        }
        let mut text: Vec<u8> = Vec::new();
        let take = |chunk: &[u8]| {
            text.extend_from_slice(chunk);
            if text.len() > 2 * most {
                text.drain(..text.len() - most);
            }
            true
        };
        let bytes = self.streamed(path, time, Some(most as u64), take).await?.bytes;
        if bytes >= most as u64 {
            text.drain(..text.len().saturating_sub(most));
            // The first line of a tail is the end of one.
            let first = text.iter().position(|b| *b == b'\n').map_or(0, |end| end + 1);
            text.drain(..first);
        }
        let tail = Tail { text: Arc::new(text), bytes };
        self.tails.put(path, &tail);
        Ok(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let tails = Tails::default();
        let tail = |n: u64| Tail { text: Arc::new(vec![b'x'; 3]), bytes: n };
        for n in 0..20 {
            tails.put(&format!("node-{n}"), &tail(n));
        }
        assert_eq!(
            (tails.get("node-19"), tails.get("node-4"), tails.get("node-3")),
            (Some(tail(19)), Some(tail(4)), None)
        );
    }
}
