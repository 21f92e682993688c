//! Takes a round and brings the view up to date with it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dualplane_base::units::Bytes;
use dualplane_node::cgroup::Limit;
use dualplane_node::clock::{Anchor, Moment};
use dualplane_node::gpu::{DeviceId, GpuProcess, Gpus};
use dualplane_node::node;
use dualplane_node::sample::{self, Record, RecordKind, SampleEvent, Sampler, Scope};

use super::allocations::Allocations;
use super::names::NameCache;
use super::processes::{Candidate, choose};
use crate::engine::{Engines, candidate};
use crate::view::{ContainerView, EngineSample, GpuView, Holder, View, XidTally};

/// Between two questions to an engine: its gauges move with each step, its page costs it some milliseconds.
const ENGINES_EVERY: Duration = Duration::from_secs(5);

/// Where things are.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is sampled, and how often.
    pub sample: sample::Config,
    /// `/var/log/pods` of the host.
    pub pod_logs: PathBuf,
    /// `/var/log/containers` of the host.
    pub links: PathBuf,
    /// List processes: needs the host's pid namespace.
    pub processes: bool,
    /// How often engines are asked; `None`: never. Needs [`Self::processes`].
    pub engines: Option<Duration>,
    /// The kubelet's pod-resources socket; `None`: it is not asked.
    pub pod_resources: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sample: sample::Config::default(),
            pod_logs: "/var/log/pods".into(),
            links: "/var/log/containers".into(),
            processes: true,
            engines: Some(ENGINES_EVERY),
            pod_resources: None,
        }
    }
}

/// Rounds, names and process lists of one machine.
#[derive(Debug)]
pub struct Observer {
    config: Config,
    sampler: Sampler,
    names: NameCache,
    view: View,
    listed: HashMap<u16, Moment>,
    /// What each held when its processes were last listed.
    held_then: HashMap<u16, u64>,
    engines: Option<Engines>,
    given: Option<Allocations>,
    /// Metrics ports that somebody gave, by slot.
    ports: HashMap<u16, Vec<u16>>,
    /// By UUID or address of the card.
    xids: HashMap<String, XidTally>,
    /// The kernel's lines are counted, so the driver's events are not.
    kernel_counts: bool,
    records: Vec<Record>,
    noticed: Vec<SampleEvent>,
}

impl Observer {
    /// Begins; nothing is read yet.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(config: Config, gpus: Box<dyn Gpus>) -> std::io::Result<Self> {
        Ok(Self {
            sampler: Sampler::new(config.sample.clone(), gpus)?,
            names: NameCache::new(&config.links, &config.pod_logs),
            view: View::default(),
            listed: HashMap::new(),
            held_then: HashMap::new(),
            engines: config
                .engines
                .filter(|_| config.processes)
                .map(|every| Engines::start(config.sample.proc_root.clone(), every))
                .transpose()?,
            given: config.pod_resources.clone().map(Allocations::start).transpose()?,
            ports: HashMap::new(),
            xids: HashMap::new(),
            kernel_counts: false,
            records: Vec::new(),
            noticed: Vec::new(),
            config,
        })
    }

    /// When the next round is due.
    #[must_use]
    pub fn due(&self) -> Moment {
        self.sampler.due()
    }

    /// The machine after the last round. A container that vanished in it is not here any more: [`Self::round`] gave it out.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The sampler, for its hierarchy and its counters.
    #[must_use]
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// Records of the last round.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What the last round noticed.
    #[must_use]
    pub fn noticed(&self) -> &[SampleEvent] {
        &self.noticed
    }

    /// Metrics ports of a container, as an annotation of its pod gives them: they are asked whatever runs there.
    pub fn set_ports(&mut self, slot: u16, ports: Vec<u16>) {
        self.ports.insert(slot, ports);
    }

    /// Xids by UUID or address of the card, as the kernel's lines tell them; from now on they alone count.
    pub fn set_xids(&mut self, xids: HashMap<String, XidTally>) {
        (self.xids, self.kernel_counts) = (xids, true);
    }

    /// Whether the kubelet has not answered yet which GPUs it gave.
    #[must_use]
    pub fn waits_for_kubelet(&self) -> bool {
        self.given.as_ref().is_some_and(Allocations::waits)
    }

    /// Takes a round. Returns the containers that are gone, as they were last seen.
    pub fn round(&mut self) -> Vec<ContainerView> {
        let round = self.sampler.round(&mut self.records, &mut self.noticed);
        self.view.at = round.host.from;
        self.view.wall_ms = Anchor::take().wall_ms(round.host.from);
        self.view.round = Some(round);
        let mut gone = self.take_noticed();
        self.take_records(round.gpus.is_some());
        self.name(&mut gone);
        if round.scope == Scope::Whole && self.config.processes {
            self.list();
        }
        self.ask_engines();
        if let Some(book) = &mut self.given {
            book.turn(self.view.at, &mut self.view);
        }
        gone
    }

    /// Looks who came and went, between two rounds. New containers are read and listed at once: some live a third of a
    /// second. Returns the containers that are gone.
    pub fn sweep(&mut self) -> Vec<ContainerView> {
        self.sampler.sweep(&mut self.records, &mut self.noticed);
        let mut gone = self.take_noticed();
        self.name(&mut gone);
        let came = self.noticed.iter().any(|n| matches!(n, SampleEvent::Appeared { .. }));
        if came && self.config.processes {
            self.list();
        }
        gone
    }

    /// Names a container that is gone, where the kubelet's links tell its name by now.
    pub fn name_gone(&mut self, container: &mut ContainerView) {
        self.name(std::slice::from_mut(container));
    }

    /// Brings the view's containers up to date. Returns those that are gone.
    fn take_noticed(&mut self) -> Vec<ContainerView> {
        let mut gone = Vec::new();
        // A sweep comes between rounds: what is new in it is as old as this.
        let now = Moment::now();
        for n in &self.noticed {
            match n {
                SampleEvent::Appeared { slot, group } => {
                    self.view.containers.insert(*slot, ContainerView::new(*slot, group.clone(), now));
                }
                SampleEvent::Vanished { slot, last, at, .. } => {
                    self.listed.remove(slot);
                    self.held_then.remove(slot);
                    self.ports.remove(slot);
                    if let Some(mut c) = self.view.containers.remove(slot) {
                        (c.memory, c.at) = (**last, *at);
                        gone.push(c);
                    }
                }
                SampleEvent::Devices(devices) => {
                    self.view.gpu_gap = None;
                    self.view.gpus =
                        devices.iter().map(|d| GpuView { device: d.clone(), ..GpuView::default() }).collect();
                }
                SampleEvent::NoGpus(gap) => {
                    self.view.gpu_gap = Some(gap.clone());
                    self.view.gpus.clear();
                }
                SampleEvent::Gpu(e) => {
                    // Where the kernel's lines are read, they tell the same, with those before this run.
                    let code = e.xid.and_then(|x| u32::try_from(x).ok()).filter(|_| !self.kernel_counts);
                    if let Some(code) = code {
                        let tally = self.xids.entry(e.uuid.clone()).or_default();
                        *tally.by_code.entry(code).or_default() += 1;
                        tally.last = Some(code);
                    }
                }
                SampleEvent::OomKills { .. } => {}
            }
        }
        for s in self.sampler.containers().slots() {
            if let Some(c) = self.view.containers.get_mut(&s.number) {
                (c.memory, c.at) = (s.memory, s.at);
            }
        }
        gone
    }

    /// Takes what engines answered since the last round, and asks them again when it is time.
    fn ask_engines(&mut self) {
        let Some(engines) = &mut self.engines else { return };
        for (slot, sample) in engines.take() {
            let Some(c) = self.view.containers.get_mut(&slot) else { continue };
            self.records.push(Record::engine(slot, sample.at, fields(&sample)));
            c.engine = Some(Arc::new(sample));
        }
        let now = self.view.at;
        if engines.is_due(now) {
            let given = |slot: &u16| self.ports.get(slot).map_or(&[][..], Vec::as_slice);
            let all = self.view.containers.values();
            let all = all.filter_map(|c| candidate(c.slot, &c.processes.processes, given(&c.slot)));
            engines.ask(now, all.collect());
        }
    }

    /// Machine and GPUs out of the round's records.
    fn take_records(&mut self, gpus: bool) {
        if gpus {
            self.view.gpus.iter_mut().for_each(|g| g.processes.clear());
            self.view.containers.values_mut().for_each(|c| c.vram.clear());
        }
        for r in &mut self.records {
            if r.kind == RecordKind::Node {
                self.view.machine = r.machine().unwrap_or_default();
                continue;
            }
            let Some(gpu) = self.view.gpus.get_mut(usize::from(r.slot)) else { continue };
            match r.kind {
                RecordKind::Gpu => {
                    gpu.at = r.at;
                    gpu.reading = r.reading().unwrap_or_default();
                }
                RecordKind::GpuHealth => {
                    let tally = self.xids.get(&gpu.device.uuid).or_else(|| self.xids.get(&gpu.device.pci));
                    // An Xid is of a card, not of a part of it.
                    gpu.xids = tally.filter(|_| gpu.device.card.is_none()).cloned().unwrap_or_default();
                    let Some(mut health) = r.health() else { continue };
                    if gpu.device.is_nvidia() {
                        (health.xids, health.last_xid) = (Some(gpu.xids.total()), gpu.xids.last);
                    }
                    *r = Record::gpu_health(r.at, &health);
                    gpu.health = Some(health);
                }
                RecordKind::GpuProcess => {
                    let Some((pid, used, slot)) = r.process() else { continue };
                    let process =
                        GpuProcess { device: DeviceId(r.slot), pid, used, other_kind: r.other_kind() };
                    gpu.processes.push((process, slot));
                    if let Some(c) = slot.and_then(|s| self.view.containers.get_mut(&s)) {
                        c.vram.push(Holder { device: r.slot, pid, used });
                    }
                }
                _ => {}
            }
        }
    }

    /// Names those that have none yet.
    fn name(&mut self, gone: &mut [ContainerView]) {
        let unnamed = |c: &ContainerView| c.named.is_none() && c.group.identity.container_id.is_some();
        if !self.view.containers.values().chain(gone.iter()).any(unnamed) {
            return;
        }
        self.names.refresh();
        for c in self.view.containers.values_mut().chain(gone.iter_mut()).filter(|c| unnamed(c)) {
            let id = c.group.identity.container_id.as_deref().unwrap_or_default();
            c.named = self.names.of(id).cloned();
            if let Some(book) = self.given.as_mut().filter(|_| c.named.is_some()) {
                book.named(c);
            }
        }
    }

    fn list(&mut self) {
        let Some(hierarchy) = self.sampler.hierarchy() else { return };
        let now = Moment::now();
        let candidates = self.view.containers.values().map(|c| Candidate {
            slot: c.slot,
            since: c.since,
            listed: self.listed.get(&c.slot).copied(),
            working_set: c.memory.working_set().map(|b| b.0),
            limit: c.memory.limit.and_then(Limit::bytes).map(|b: Bytes| b.0),
            then: self.held_then.get(&c.slot).copied(),
        });
        for slot in choose(candidates, now) {
            self.listed.insert(slot, now);
            if let Some(held) = self.view.containers.get(&slot).and_then(|c| c.memory.working_set()) {
                self.held_then.insert(slot, held.0);
            }
            let Some(c) = self.view.containers.get_mut(&slot) else { continue };
            let listing = node::list(&hierarchy.dir(&c.group), &self.config.sample.proc_root, false);
            // A container whose processes are all gone at this moment is about to vanish: the list before is what counts.
            if listing.processes.is_empty() {
                continue;
            }
            c.shm = listing
                .processes
                .first()
                .and_then(|p| node::of_process(&self.config.sample.proc_root, p.pid));
            self.records.extend(c.shm.map(|s| Record::shm(slot, now, s)));
            c.processes = Arc::new(listing);
        }
    }
}

/// An engine's numbers as a record holds them: share in millionths, requests in thousandths, seconds in microseconds.
fn fields(s: &EngineSample) -> [Option<u64>; 8] {
    let times = |v: Option<f64>, factor: f64| v.map(|v| (v * factor).round() as u64);
    [
        times(s.kv_use, 1e6),
        times(s.running, 1e3),
        times(s.waiting, 1e3),
        times(s.preemptions, 1.0),
        times(s.first_tokens, 1.0),
        times(s.first_token_seconds, 1e6),
        times(s.prompt_tokens, 1.0),
        times(s.generated_tokens, 1.0),
    ]
}
