//! Takes rounds: asks the GPUs, reads containers and machine meanwhile, takes the GPUs' answer.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use dualplane_base::units::Bytes;

use super::{Containers, Rate, RateLimits, Record, Scope, Slot};
use crate::cgroup::{Group, Hierarchy, Memory, Wanted, Watch, find};
use crate::clock::{Anchor, Moment, Span};
use crate::gpu::{Batch, Device, Event, GpuGap, GpuThread, Gpus};
use crate::node::{Machine, NodeReader, cgroup_of};

/// `memory.stat` has some 3 KiB, `/proc/vmstat` 6 KiB, `/proc/meminfo` 2 KiB.
const BUFFER: usize = 16 << 10;
/// A GPU that has not answered by then is late; its answer counts for the next round, with the time at which it was read.
const GPU_WAIT: Duration = Duration::from_millis(40);
/// Rounds between error counters and lists of devices.
const SLOW_ROUNDS: u64 = 30;
/// Rounds after which one more directory is looked into, whatever its stamp says: all of a full node in half an hour.
const DOUBT_ROUNDS: u64 = 15;

/// Where things are.
#[derive(Debug, Clone)]
pub struct Config {
    /// `/sys/fs/cgroup`, or where it is mounted.
    pub cgroups: PathBuf,
    /// `/proc` of the host.
    pub proc_root: PathBuf,
    /// Services and roots besides containers.
    pub wanted: Wanted,
    /// How often.
    pub rate: RateLimits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cgroups: "/sys/fs/cgroup".into(),
            proc_root: "/proc".into(),
            wanted: Wanted::default(),
            rate: RateLimits::default(),
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleEvent {
    /// A new group.
    Appeared {
        /// Its number in records.
        slot: u16,
        /// Which.
        group: Group,
    },
    /// A group is gone: its container ended. These are the last values that anybody has.
    Vanished {
        /// Its number in records.
        slot: u16,
        /// Which.
        group: Group,
        /// The last values.
        last: Box<Memory>,
        /// When they were read.
        at: Moment,
    },
    /// The OOM killer killed processes of a group; the group may live on.
    OomKills {
        /// Its number in records.
        slot: u16,
        /// How many since the last round.
        kills: u64,
    },
    /// Devices, when they are listed first and when they change.
    Devices(Vec<Device>),
    /// GPUs cannot be read.
    NoGpus(GpuGap),
    /// An event of a GPU.
    Gpu(Event),
}

impl SampleEvent {
    pub(super) fn vanished(s: &Slot) -> Self {
        Self::Vanished { slot: s.number, group: s.group.clone(), last: Box::new(s.memory), at: s.at }
    }
}

/// How a round went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Its number.
    pub number: u64,
    /// What it covered.
    pub scope: Scope,
    /// When containers were read.
    pub host: Span,
    /// When the machine was read.
    pub node: Span,
    /// When GPUs were read; `None` where they did not answer in time or are none.
    pub gpus: Option<Span>,
}

impl Round {
    /// The most that lies between a reading of one plane and one of the other.
    #[must_use]
    pub fn skew(&self) -> Option<Duration> {
        let g = self.gpus?;
        Some(self.host.to.since(g.from).max(g.to.since(self.host.from)))
    }
}

/// Reads a machine in rounds.
#[derive(Debug)]
pub struct Sampler {
    config: Config,
    hierarchy: Option<Hierarchy>,
    containers: Containers,
    watch: Watch,
    node: NodeReader,
    machine: Machine,
    gpus: GpuThread,
    devices: Vec<Device>,
    gap: Option<GpuGap>,
    pids: HashMap<u32, (u64, Option<u16>)>,
    vram: Vec<Option<Bytes>>,
    vram_at: Moment,
    rate: Rate,
    round: u64,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Begins; nothing is read yet.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(config: Config, gpus: Box<dyn Gpus>) -> std::io::Result<Self> {
        Ok(Self {
            hierarchy: Hierarchy::below(&config.cgroups),
            containers: Containers::default(),
            watch: Watch::default(),
            node: NodeReader::open(&config.proc_root),
            machine: Machine::default(),
            gpus: GpuThread::start(gpus)?,
            devices: Vec::new(),
            gap: None,
            pids: HashMap::new(),
            vram: Vec::new(),
            vram_at: Moment::default(),
            rate: Rate::new(config.rate, Moment::now()),
            round: 0,
            buffer: vec![0; BUFFER],
            config,
        })
    }

    /// When the next round is due.
    #[must_use]
    pub fn due(&self) -> Moment {
        self.rate.due()
    }

    /// The containers.
    #[must_use]
    pub fn containers(&self) -> &Containers {
        &self.containers
    }

    /// The hierarchy of groups; `None` where no memory controller was found.
    #[must_use]
    pub fn hierarchy(&self) -> Option<&Hierarchy> {
        self.hierarchy.as_ref()
    }

    /// Directories in which groups come and go: what to watch so as to be woken. They are others when
    /// [`Watch::walks`] is another.
    #[must_use]
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Rounds in which the GPU driver did not answer.
    #[must_use]
    pub fn gpu_late(&self) -> u64 {
        self.gpus.late
    }

    /// Looks which containers came and went, and reads the new ones for the first time, between two rounds: who lives a
    /// third of a second would else never be read. `out` and `noticed` are emptied first.
    pub fn sweep(&mut self, out: &mut Vec<Record>, noticed: &mut Vec<SampleEvent>) {
        out.clear();
        noticed.clear();
        let now = Moment::now();
        // Where one went and another came, no directory looks different from outside: the one that went tells.
        self.containers.check(&mut self.buffer, noticed);
        self.forget_parents(noticed);
        self.walk(now, noticed);
        for n in noticed.iter() {
            if let SampleEvent::Appeared { slot, .. } = n {
                self.containers.first(*slot, &mut self.buffer, out);
            }
        }
    }

    /// Takes a round now. `out` and `noticed` are emptied first.
    pub fn round(&mut self, out: &mut Vec<Record>, noticed: &mut Vec<SampleEvent>) -> Round {
        out.clear();
        noticed.clear();
        let began = Moment::now();
        let scope = self.rate.scope(began);
        let (number, slow) = (self.round, self.round.is_multiple_of(SLOW_ROUNDS));
        self.round += 1;
        if scope == Scope::Whole {
            self.walk(began, noticed);
        }
        let asked = self.gpus.ask(slow, slow);
        let mut host = Span { from: Moment::now(), to: began };
        let limits = *self.rate.limits();
        let before = noticed.len();
        let moving = self.containers.read(scope, number, &limits, &mut self.buffer, out, noticed);
        host.to = Moment::now();
        self.forget_parents(noticed.get(before..).unwrap_or_default());
        self.node.read(scope == Scope::Whole, &mut self.buffer, &mut self.machine);
        let node = Span { from: host.to, to: Moment::now() };
        out.push(Record::node(node.from, &self.machine));
        let batch = self.gpus.answer(if asked { GPU_WAIT } else { Duration::ZERO });
        let moving = batch.as_ref().is_some_and(|b| self.vram_moves(b)) || moving;
        let gpus = batch.map(|b| self.take(b, out, noticed));
        self.rate.took(scope, began, moving);
        // An anchor each round: who reads records later has no clock of this boot.
        let wall = Anchor::take().wall_ms(host.from);
        out.push(Record::round(number, wall, host, node, gpus));
        Round { number, scope, host, node, gpus }
    }

    /// The successor of a group that is gone may have the same parent with the same count of children.
    fn forget_parents(&mut self, noticed: &[SampleEvent]) {
        for n in noticed {
            if let (SampleEvent::Vanished { group, .. }, Some(h)) = (n, &self.hierarchy)
                && let Some(parent) = h.dir(group).parent()
            {
                self.watch.forget(parent);
            }
        }
    }

    fn walk(&mut self, now: Moment, noticed: &mut Vec<SampleEvent>) {
        if self.round.is_multiple_of(DOUBT_ROUNDS) {
            self.watch.doubt();
        }
        if !self.watch.changed() {
            return;
        }
        // The agent may start before the hierarchy is mounted.
        if self.hierarchy.is_none() {
            self.hierarchy = Hierarchy::below(&self.config.cgroups);
        }
        let Some(hierarchy) = &self.hierarchy else { return };
        let found = find(hierarchy, &self.config.wanted, &mut self.watch);
        self.containers.update(hierarchy, found, now, noticed);
    }

    fn take(&mut self, mut batch: Batch, out: &mut Vec<Record>, noticed: &mut Vec<SampleEvent>) -> Span {
        if batch.want_devices {
            if batch.gap != self.gap {
                noticed.extend(batch.gap.clone().map(SampleEvent::NoGpus));
                self.gap.clone_from(&batch.gap);
            }
            if batch.devices != self.devices {
                self.devices.clone_from(&batch.devices);
                noticed.push(SampleEvent::Devices(batch.devices.clone()));
            }
        }
        let (span, at) = (batch.span, batch.span.from);
        out.extend(batch.readings.iter().map(|r| Record::gpu(at, r)));
        for p in &batch.processes {
            let slot = self.slot_of(p.pid);
            out.push(Record::gpu_process(at, p, slot));
        }
        let round = self.round;
        // A pid that left the GPU may come again as another process.
        self.pids.retain(|_, (seen, _)| *seen == round);
        out.extend(batch.health.iter().map(|h| Record::gpu_health(at, h)));
        noticed.extend(batch.events.drain(..).map(SampleEvent::Gpu));
        self.gpus.done(batch);
        span
    }

    /// VRAM in use moves by as much as a container's memory must.
    fn vram_moves(&mut self, batch: &Batch) -> bool {
        let limits = *self.rate.limits();
        let seconds = batch.span.from.since(self.vram_at).as_secs_f64();
        self.vram_at = batch.span.from;
        let mut moves = false;
        for r in &batch.readings {
            let (Some(used), Some(total)) = (r.used, r.total) else { continue };
            let at = usize::from(r.device.0);
            if at >= self.vram.len() {
                self.vram.resize(at + 1, None);
            }
            if let Some(last) = self.vram.get_mut(at) {
                let moved = last.map_or(0, |l: Bytes| l.0.abs_diff(used.0));
                moves |= moved as f64 * 1000.0 >= total.0 as f64 * limits.fast_permille as f64 * seconds
                    && moved > 0;
                *last = Some(used);
            }
        }
        moves
    }

    /// The container of a process on a GPU; asked once a process, again now and then where none is known yet.
    fn slot_of(&mut self, pid: u32) -> Option<u16> {
        let round = self.round;
        if let Some((seen, slot)) = self.pids.get_mut(&pid) {
            *seen = round;
            if slot.is_some() || !round.is_multiple_of(SLOW_ROUNDS) {
                return *slot;
            }
        }
        let slot = cgroup_of(&self.config.proc_root, pid).and_then(|p| {
            let own = |s: &&Slot| {
                let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
                p.path.strip_prefix(s.group.path()).is_some_and(below)
            };
            // In a cgroup namespace of its own the agent sees paths from there (`/../kubepods/…`); ids stay what they are.
            let named = |s: &&Slot| {
                let id = s.group.identity.container_id.as_deref();
                p.path.starts_with("/../") && id.is_some_and(|id| p.path.contains(id))
            };
            let slots = self.containers.slots();
            slots.iter().find(own).or_else(|| slots.iter().find(named)).map(|s| s.number)
        });
        self.pids.insert(pid, (round, slot));
        slot
    }
}
