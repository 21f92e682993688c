//! Writes what was frozen, in a thread of its own: a slow disk must not stop the samples.
//!
//! What does not fit on a full disk waits in memory, within bounds, first deaths before later ones, and is written when
//! there is room. What could not be kept at all is counted.

use dualplane_base::order::Order as _;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use dualplane_core::knowledge::Knowledge;
use dualplane_kube::bundle::pack;
use dualplane_node::clock::{Anchor, Moment};

use super::bundle::{self, Author};
use super::freeze::Freeze;
use super::judge::Task;
use super::shared_ring::SharedRing;
use super::time::rfc3339;
use crate::health::{Health, Part};
use crate::incident::{Kind, LoopKey, SCHEMA, State, Store, StoreError, Summary};
use crate::series::LastIncident;

/// Bytes that wait for room on the disk.
const MAX_WAITING: usize = 8 << 20;
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(500);

/// What the keeper tells back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeeperEvent {
    /// The end of this group is on the disk, or will never be.
    Done {
        /// Path of the group.
        path: String,
    },
    /// An end that was admitted to its loop was none.
    NotADeath(LoopKey),
}

/// Data that could not be kept, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeptCounts {
    /// Bundles that were written.
    pub kept: u64,
    /// Bundles that wait for room.
    pub waiting: u64,
    /// Bundles that will never be written: the budget is used up by first deaths, or too many wait.
    pub lost: u64,
    /// Writes that failed and were tried again.
    pub retried: u64,
    /// Bundles that are kept and have no verdict, though it was tried again.
    pub unjudged: u64,
    /// Ends of which it is settled what they were.
    pub settled: u64,
}

/// What the threads share.
#[derive(Debug)]
pub struct Shared {
    store: Mutex<Store>,
    counts: Mutex<KeptCounts>,
}

impl Shared {
    pub(super) fn new(store: Store) -> Arc<Self> {
        Arc::new(Self { store: Mutex::new(store), counts: Mutex::new(KeptCounts::default()) })
    }

    /// The folder of incidents. A thread that panicked while it held it left nothing half-done in it.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder, where nobody writes to it now: a write waits for the disk, and who samples must not.
    #[must_use]
    pub fn try_store(&self) -> Option<MutexGuard<'_, Store>> {
        match self.store.try_lock() {
            Ok(store) => Some(store),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What was kept and what was not.
    #[must_use]
    pub fn counts(&self) -> KeptCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut KeptCounts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A packed bundle.
struct PackedBundle {
    summary: Summary,
    bytes: Vec<u8>,
    noticed: Moment,
    path: String,
    task: Task,
}

/// What the thread works with.
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) author: Author,
    pub(super) tape: SharedRing,
    pub(super) events: Sender<KeeperEvent>,
    pub(super) judge: Sender<Task>,
    pub(super) health: Arc<Health>,
}

impl Keeper {
    /// Starts the thread. It ends when all that can send to it are gone and all is written that can be.
    pub(super) fn start(self, jobs: Receiver<Freeze>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("keeper".into()).spawn(move || self.run(&jobs))
    }

    fn run(mut self, jobs: &Receiver<Freeze>) {
        let mut waiting: VecDeque<PackedBundle> = VecDeque::new();
        loop {
            let job = if waiting.is_empty() {
                jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                jobs.recv_timeout(AGAIN)
            };
            match job {
                Ok(freeze) => {
                    if let Some(packed) = self.pack(freeze) {
                        waiting.push_back(packed);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.write_all(&mut waiting);
                    return;
                }
            }
            self.write_all(&mut waiting);
        }
    }

    fn pack(&mut self, mut freeze: Freeze) -> Option<PackedBundle> {
        // The kernel's record is that of a kill which was told, and the container lived on.
        let lived_on = freeze.kind != Kind::Kill
            && freeze.kills == 0
            && self.shared.store().kills_of(&freeze.who.container_id).next().is_some();
        if lived_on {
            freeze.kind = Kind::End;
            freeze.wall_ms = Anchor::take().wall_ms(freeze.noticed);
        }
        let died_at = rfc3339(freeze.wall_ms);
        let path = freeze.container.as_ref().map(|c| c.group.path().to_owned()).unwrap_or_default();
        let last = self.last_incident(&freeze.who.loop_key());
        let series = self.tape.series(&freeze, last);
        let files = bundle::files(&mut freeze, series, &died_at, &self.author, &self.knowledge);
        let mtime = u64::try_from(freeze.wall_ms / 1000).unwrap_or_default();
        let Ok(bytes) = pack([(freeze.id.clone(), files.as_slice())], mtime) else {
            self.shared.count(|c| c.lost += 1);
            self.report(KeeperEvent::Done { path });
            return None;
        };
        let who = freeze.who.clone();
        let summary = Summary {
            schema: SCHEMA.into(),
            id: freeze.id.clone(),
            kind: freeze.kind,
            state: State::Begun,
            died_at,
            node: self.author.node.clone(),
            namespace: who.namespace.clone(),
            pod: who.pod.clone(),
            uid: who.uid.clone(),
            api_uid: None,
            container: who.container.clone(),
            container_id: who.container_id.clone(),
            restart: who.restart,
            first: freeze.first,
            class: None,
            plane: None,
            trigger: None,
            kernel_record: freeze.kernel_record,
            from_exec: freeze.from_exec == Some(true),
            exit_code: None,
            durable_ms: None,
            bytes: 0,
        };
        let task = Task {
            id: freeze.id.clone(),
            oom: freeze.oom(),
            lived_on,
            who,
            noticed: freeze.noticed,
            judged: None,
        };
        Some(PackedBundle { summary, bytes, noticed: freeze.noticed, path, task })
    }

    /// How the container died last, or what was killed in it.
    fn last_incident(&self, key: &LoopKey) -> Option<LastIncident> {
        let store = self.shared.store();
        let judged = |s: &&Summary| s.kind != Kind::End && s.class.is_some() && s.loop_key() == *key;
        let last = store.all().rev().find(judged)?;
        Some(LastIncident {
            class: last.class.clone()?,
            plane: last.plane.clone().unwrap_or_else(|| "none".into()),
            kind: if last.kind == Kind::Kill { "kill" } else { "death" },
        })
    }

    /// Writes what waits; what does not fit stays.
    fn write_all(&self, waiting: &mut VecDeque<PackedBundle>) {
        // First deaths before later ones, in the order in which they came.
        waiting.make_contiguous().order_by_key(|p| !p.summary.first);
        while let Some(p) = waiting.pop_front() {
            match self.write(&p) {
                Ok(()) => {
                    self.health.report(&Part::Incidents, Ok(()));
                    self.done(p);
                }
                Err(e @ StoreError::Budget(_)) => {
                    self.health.report(&Part::Incidents, Err(e.to_string()));
                    self.shared.count(|c| c.lost += 1);
                    self.shared.store().remove(&p.summary.id);
                    self.report(KeeperEvent::Done { path: p.path });
                }
                Err(e @ StoreError::Io { .. }) => {
                    self.health.report(&Part::Incidents, Err(e.to_string()));
                    self.shared.count(|c| c.retried += 1);
                    waiting.push_front(p);
                    break;
                }
            }
        }
        let mut bytes: usize = waiting.iter().map(|p| p.bytes.len()).sum();
        while bytes > MAX_WAITING
            && let Some(p) = waiting.pop_back()
        {
            bytes = bytes.saturating_sub(p.bytes.len());
            self.shared.count(|c| c.lost += 1);
            self.shared.store().remove(&p.summary.id);
            self.report(KeeperEvent::Done { path: p.path });
        }
        let now = waiting.len() as u64;
        self.shared.count(|c| c.waiting = now);
    }

    fn write(&self, p: &PackedBundle) -> Result<(), StoreError> {
        let mut store = self.shared.store();
        let id = &p.summary.id;
        if store.get(id).is_none() {
            store.begin(p.summary.clone())?;
        }
        store.keep(id, &p.bytes)
    }

    fn done(&self, p: PackedBundle) {
        let ms = u64::try_from(Moment::now().since(p.noticed).as_millis()).ok();
        let mut store = self.shared.store();
        // A kill that its container did not survive is told by the death.
        if p.summary.kind == Kind::Death {
            store.remove_kills_of(&p.summary.id);
        }
        // The bundle is safe; that its summary says so can wait for room.
        let _ = store.change(&p.summary.id, |s| s.durable_ms = ms);
        drop(store);
        self.shared.count(|c| c.kept += 1);
        self.report(KeeperEvent::Done { path: p.path });
        let _ = self.judge.send(p.task);
    }

    fn report(&self, event: KeeperEvent) {
        let _ = self.events.send(event);
    }
}

/// Where bundles of a state folder are.
#[must_use]
pub fn incidents_dir(state: &std::path::Path) -> PathBuf {
    state.join("incidents")
}
