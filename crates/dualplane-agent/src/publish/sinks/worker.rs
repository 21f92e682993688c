//! Which incident goes to a sink next, and what has been there: the folder of incidents is the queue, a marker a delivery.
//!
//! A marker is written after the delivery and synced. Killed in between, the agent delivers once more under the same name,
//! which a sink bears. Markers go when the summaries of their incidents go, so there are never more of them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dualplane_node::clock::Moment;

use super::{Sink, SinkError};
use crate::incident::folder::{self, Stamp};
use crate::incident::{BUNDLE_SUFFIX, Kind, State, Summary, is_id, write_whole};
use crate::publish::{SinkCounts, stable_hash};

/// After the first failure; doubled with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait: a server that is back is found within so much.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Between two looks at a sink that has nothing to do; at one that cannot be reached.
const CHECK: Duration = Duration::from_secs(300);
const CHECK_AGAIN: Duration = Duration::from_secs(20);
/// An incident that is not judged by then goes as it is.
const UNJUDGED: Duration = Duration::from_secs(60);

/// One sink with its markers.
pub(super) struct Worker {
    sink: Box<dyn Sink>,
    incidents: PathBuf,
    markers: PathBuf,
    done: HashSet<String>,
    /// Summaries that were looked at and not wanted, as they were at that time.
    unwanted: HashMap<String, Stamp>,
    attempts: HashMap<String, u32>,
    failures: u32,
    not_before: Moment,
    pub(super) counts: SinkCounts,
    /// Why the last attempt failed; `None` behind one that did not.
    pub(super) trouble: Option<String>,
    checked: Option<Moment>,
    /// The incident that was refused last, with the reason, until it is taken.
    pub(super) refusal: Option<(String, String)>,
}

/// What to do after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// One more may be delivered at this time.
    At(Moment),
    /// Nothing is left.
    Idle,
}

impl Worker {
    /// Reads the markers of earlier runs.
    ///
    /// # Errors
    /// Their folder cannot be made or listed: without it everything would be delivered anew at each start.
    pub(super) fn open(sink: Box<dyn Sink>, state: &Path, incidents: &Path) -> io::Result<Self> {
        let markers = state.join(sink.name());
        fs::create_dir_all(&markers)?;
        let names = fs::read_dir(&markers)?.filter_map(Result::ok);
        let done = names.filter_map(|e| e.file_name().into_string().ok()).filter(|n| is_id(n)).collect();
        Ok(Self {
            counts: SinkCounts { name: sink.name().to_owned(), ..SinkCounts::default() },
            sink,
            incidents: incidents.to_owned(),
            markers,
            done,
            unwanted: HashMap::new(),
            attempts: HashMap::new(),
            failures: 0,
            not_before: Moment::default(),
            trouble: None,
            checked: None,
            refusal: None,
        })
    }

    /// Delivers at most one incident.
    pub(super) fn step(&mut self, now: Moment) -> Next {
        let waiting = self.waiting();
        self.counts.pending = waiting.len() as u64;
        // The one that was tried the least, so that one that cannot be taken does not hold up the others; then the oldest.
        let tried = |s: &Summary| self.attempts.get(&s.id).copied().unwrap_or(0);
        let Some(next) = waiting.iter().min_by_key(|s| (tried(s), &s.id)) else {
            // Nothing to deliver: what stands in the way is known before the first death.
            self.check();
            return Next::Idle;
        };
        if now < self.not_before {
            return Next::At(self.not_before);
        }
        let bundle = self.incidents.join(format!("{}{BUNDLE_SUFFIX}", next.id));
        match self.sink.deliver(next, &bundle) {
            Ok(()) => self.settle(&next.id, "", now, |c| &mut c.delivered),
            Err(SinkError::Refused(why)) => {
                // What is wrong is this incident, not the sink.
                self.settle(&next.id, &why, now, |c| &mut c.refused);
                self.refusal = Some((next.id.clone(), why));
            }
            Err(SinkError::Later(why)) => {
                self.counts.failed += 1;
                self.trouble = Some(why);
                *self.attempts.entry(next.id.clone()).or_insert(0) += 1;
                self.back_off(&next.id);
            }
        }
        Next::At(self.not_before)
    }

    fn settle(&mut self, id: &str, why: &str, now: Moment, count: fn(&mut SinkCounts) -> &mut u64) {
        *count(&mut self.counts) += 1;
        self.counts.pending = self.counts.pending.saturating_sub(1);
        self.attempts.remove(id);
        self.done.insert(id.to_owned());
        (self.failures, self.trouble) = (0, None);
        self.not_before = now.plus(self.sink.pace());
        // Without its marker it is delivered once more after a restart, not lost.
        if let Err(e) = self.mark(id, why) {
            self.trouble = Some(format!("{}: {e}", self.markers.display()));
        }
    }

    fn check(&mut self) {
        let now = Moment::now();
        let rest = if self.trouble.is_some() { CHECK_AGAIN } else { CHECK };
        if self.checked.is_none_or(|at| now.since(at) >= rest) {
            self.trouble = self.sink.check().err();
            self.checked = Some(Moment::now());
        }
    }

    /// Notes that an incident needs no delivery any more; all of them where somebody removed the folder.
    fn mark(&self, id: &str, why: &str) -> io::Result<()> {
        if !self.markers.is_dir() {
            fs::create_dir_all(&self.markers)?;
            self.done.iter().try_for_each(|done| write_whole(&self.markers.join(done), b""))?;
        }
        write_whole(&self.markers.join(id), why.as_bytes())
    }

    fn back_off(&mut self, id: &str) {
        let wait = FIRST_WAIT.saturating_mul(1 << self.failures.min(16)).min(MAX_WAIT);
        self.failures += 1;
        // Up to a quarter more, so that the agents of a cluster do not come back all at once.
        let share = stable_hash(&[id, &self.failures.to_string()]) % 256;
        let more = wait.saturating_mul(u32::try_from(share).unwrap_or(0)) / 1024;
        // A failure may have taken two minutes of its own.
        self.not_before = Moment::now().plus(wait + more);
    }

    /// Incidents that are to be delivered, the oldest first.
    fn waiting(&mut self) -> Vec<Summary> {
        let Ok(all) = folder::ids(&self.incidents) else { return Vec::new() };
        self.forget(&all);
        let mut out = Vec::new();
        for (id, changed) in all {
            if self.done.contains(&id) || self.unwanted.get(&id) == Some(&changed) {
                continue;
            }
            let Some(s) = folder::summary(&self.incidents, &id) else { continue };
            let age = SystemTime::now().duration_since(changed.0).unwrap_or_default();
            match (s.kind, s.state) {
                (Kind::End, _) => {
                    self.unwanted.insert(id, changed);
                }
                (_, State::Judged) => out.push(s),
                (_, State::Kept) if age >= UNJUDGED => out.push(s),
                (_, State::Begun | State::Kept) => {}
                (_, State::Dropped) => {
                    self.counts.lost += 1;
                    self.attempts.remove(&id);
                    // In memory alone: a restart counts it anew, as it does everything.
                    self.done.insert(id);
                }
            }
        }
        out
    }

    /// What is gone from the folder needs no memory.
    fn forget(&mut self, all: &[(String, Stamp)]) {
        let there: HashSet<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
        let gone: Vec<String> = self.done.iter().filter(|id| !there.contains(id.as_str())).cloned().collect();
        for id in gone {
            let _ = fs::remove_file(self.markers.join(&id));
            self.done.remove(&id);
        }
        self.unwanted.retain(|id, _| there.contains(id.as_str()));
        self.attempts.retain(|id, _| there.contains(id.as_str()));
    }
}
