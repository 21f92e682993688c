//! What a window is read from, taken in microseconds, so that reading does not keep the ring from the next round.

use std::path::PathBuf;

use dualplane_node::clock::Moment;

use super::Ring;
use super::segment::Range;
use super::window::{Builder, Window};

/// The segments as they stood at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    boot: String,
    segments: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    path: PathBuf,
    range: Option<Range>,
    /// Bytes of the file that belong to it; more may have been written since.
    written: u64,
    /// Bytes that wait for room on the disk.
    unwritten: Vec<u8>,
}

impl Ring {
    /// The segments of this boot that may meet a span of time, newest first.
    #[must_use]
    pub fn snapshot(&self, from: Moment, to: Moment) -> Snapshot {
        let open = self.current.iter().chain(self.waiting.iter().rev()).map(|o| Part {
            path: o.path().to_owned(),
            range: o.range(),
            written: o.written(),
            unwritten: o.unwritten().to_vec(),
        });
        let closed = self.files.of_boot(&self.header.boot).rev().map(|s| Part {
            path: s.path.clone(),
            range: s.range,
            written: u64::MAX,
            unwritten: Vec::new(),
        });
        let meets = |p: &Part| p.range.is_none_or(|r| r.meets(from, to));
        Snapshot { boot: self.header.boot.clone(), segments: open.chain(closed).filter(meets).collect() }
    }
}

impl Snapshot {
    /// Reads it, as [`Ring::window`] does. A segment that was deleted meanwhile counts as torn.
    #[must_use]
    pub fn window(&self, from: Moment, to: Moment, containers: &dyn Fn(&str) -> bool) -> Window {
        let mut reader = Builder::new(&self.boot, from, to, containers);
        for s in &self.segments {
            reader.segment(&s.path, s.range, s.written, &s.unwritten);
        }
        reader.finish()
    }
}
