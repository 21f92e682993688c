//! Lines in, events out: puts follower, assembly, counts and state together.

use std::io;
use std::path::Path;
use std::time::Duration;

use dualplane_base::time::Stamp;
use dualplane_core::facts::kernel_feed::{KernelEvent, KernelFeed};
use dualplane_core::facts::{OomRecord, XidEvent};

use super::{Follower, Recent, Source, State, StateError};
use crate::clock::Moment;

/// The kernel writes an OOM record at once; after so much silence nothing more of it will come.
const QUIET: Duration = Duration::from_millis(500);
/// Records of one turn: a flood must not keep the caller from its other work.
const A_TURN: usize = 4096;

/// What the kernel said. Who keeps it knows it again by boot and number: after a crash between keeping and
/// [`Kernel::save`] it is said a second time.
#[derive(Debug, Clone)]
pub enum KernelMessage {
    /// A run of the OOM killer, whole. Its number is in `place.line`.
    Oom(OomRecord),
    /// An Xid.
    Xid {
        /// Number of the record.
        number: u64,
        /// The event.
        event: XidEvent,
        /// The how manieth of its GPU, code and sub-code within this boot.
        nth: u64,
    },
    /// The driver complains without an Xid.
    Driver {
        /// Number of the record.
        number: u64,
        /// The line.
        text: String,
    },
    /// So many records were overwritten before they could be read.
    Lost(u64),
}

/// The kernel's messages of this boot.
#[derive(Debug)]
pub struct Kernel {
    follower: Follower,
    feed: KernelFeed,
    recent: Recent,
    state: State,
    last: Option<Moment>,
    uuids: Vec<(String, String)>,
}

impl Kernel {
    /// Follows a source from where the state stands.
    #[must_use]
    pub fn new(source: Source, state: State) -> Self {
        Self {
            follower: Follower::new(source, state.next),
            feed: KernelFeed::default(),
            recent: Recent::default(),
            state,
            last: None,
            uuids: Vec::new(),
        }
    }

    /// UUIDs by PCI address (`0000:4a:00`), as NVML knows them: counts then go by UUID, which a re-plugged card keeps.
    pub fn know_gpus(&mut self, uuids: Vec<(String, String)>) {
        self.uuids = uuids;
    }

    /// Takes in what is there, waiting at most so long for the first record. Returns the number of records.
    ///
    /// # Errors
    /// The source cannot be read any more.
    pub fn turn(&mut self, wait: Duration, out: &mut Vec<KernelMessage>) -> io::Result<usize> {
        if !wait.is_zero() {
            self.follower.wait(wait)?;
        }
        let mut records = 0;
        while records < A_TURN {
            let Some(line) = self.follower.take()? else { break };
            records += 1;
            let (r, lost) = (line.record, line.lost);
            if lost > 0 {
                out.push(KernelMessage::Lost(lost));
                self.state.lost += lost;
                // A record with a hole in it must not swallow lines of the next one.
                out.extend(self.feed.take(true).into_iter().map(KernelMessage::Oom));
            }
            self.recent.push(r.sequence, r.raw);
            let stamp = Stamp::Boot { us: i64::try_from(r.us).unwrap_or(i64::MAX) };
            match self.feed.line("kmsg", r.sequence, r.raw, r.text, Some(stamp)) {
                Some(KernelEvent::Xid(event)) if r.sequence >= self.state.counted => {
                    let address = dualplane_core::facts::pci_address(&event.pci);
                    let uuid = self.uuids.iter().find(|(a, _)| Some(a) == address.as_ref());
                    let uuid = uuid.map(|(_, u)| u.as_str());
                    let nth = self.state.fold.add(&event, uuid, r.sequence, r.us);
                    self.state.counted = r.sequence.saturating_add(1);
                    out.push(KernelMessage::Xid { number: r.sequence, event, nth });
                }
                // Counted in an earlier run, which stopped inside of an OOM record around it.
                Some(KernelEvent::Xid(_)) => {}
                Some(KernelEvent::Driver) => {
                    out.push(KernelMessage::Driver { number: r.sequence, text: r.raw.to_owned() });
                }
                None => {}
            }
            out.extend(self.feed.take(false).into_iter().map(KernelMessage::Oom));
        }
        let now = Moment::now();
        if records > 0 {
            self.last = Some(now);
        } else if self.last.is_some_and(|l| now.since(l) >= QUIET) {
            self.last = None;
            out.extend(self.feed.take(true).into_iter().map(KernelMessage::Oom));
        }
        Ok(records)
    }

    /// A kill whose record may still grow: it is told when the kernel has been quiet for half a second, or says the next.
    #[must_use]
    pub fn growing(&self) -> Option<&OomRecord> {
        self.feed.growing()
    }

    /// The descriptor of its source, for waiting on several things at once; then call [`Self::turn`] without a wait.
    #[must_use]
    pub fn file(&self) -> &std::fs::File {
        self.follower.source().file()
    }

    /// The last lines, for quoting.
    #[must_use]
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// The state as it stands: an OOM record that is not whole begins again after a restart.
    #[must_use]
    pub fn state(&self) -> State {
        let next = self.follower.next_number().map(|n| self.feed.pending().map_or(n, |p| p.min(n)));
        State { next: next.or(self.state.next), ..self.state.clone() }
    }

    /// Keeps the state. Call it behind keeping what was said.
    ///
    /// # Errors
    /// No space, no right; the state before stays.
    pub fn save(&self, path: &Path) -> Result<(), StateError> {
        self.state().save(path)
    }
}

#[cfg(test)]
mod tests;
