//! All that was recorded in a span of time, put together over segments and runs: slots are of a run, paths are of all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use dualplane_base::order::Order as _;
use dualplane_base::units::Bytes;
use dualplane_node::cgroup::Group;
use dualplane_node::clock::Moment;
use dualplane_node::cri::Named;
use dualplane_node::gpu::Device;
use dualplane_node::sample::{Record, RecordKind};

use super::note::{Engine, Note};
use super::segment::{self, Item, Range, Reader};

/// Records of a window, about 48 MiB: one pod among 8 GPUs for 20 minutes at ten rounds a second.
const MAX_RECORDS: usize = 1 << 18;

/// A span of time.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// Moments are of this boot.
    pub boot: String,
    /// Containers that were asked for and have records, by path of their cgroup.
    pub containers: BTreeMap<String, ContainerWindow>,
    /// The machine.
    pub node: Vec<Record>,
    /// Devices, in the driver's order.
    pub gpus: Vec<GpuWindow>,
    /// Rounds. Each tells its time on the wall (milliseconds since 1970, field 1).
    pub rounds: Vec<Record>,
    /// Segments that ended before their bytes did, or could not be read.
    pub torn: u64,
    /// Records whose container or device no table names.
    pub unknown: u64,
    /// Older records may be missing: the window was larger than its bound.
    pub cut: bool,
}

/// A container in a window.
#[derive(Debug, Clone)]
pub struct ContainerWindow {
    /// Which.
    pub group: Group,
    /// Its names.
    pub named: Option<Named>,
    /// What serves in it.
    pub engine: Option<Engine>,
    /// It was marked as gone, as far as the span's segments tell.
    pub gone: Option<Moment>,
    /// Its records, of the kinds [`RecordKind::Container`], [`RecordKind::Shm`] and [`RecordKind::Engine`], by time. Slots
    /// in them mean nothing: they may be of several runs.
    pub records: Vec<Record>,
}

/// A device in a window.
#[derive(Debug, Clone, Default)]
pub struct GpuWindow {
    /// Which.
    pub device: Device,
    /// Its readings.
    pub readings: Vec<Record>,
    /// Processes with memory on it, by time.
    pub processes: Vec<ProcessMemory>,
    /// Its error counters.
    pub health: Vec<Record>,
}

/// Memory of a process on a device at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessMemory {
    /// When.
    pub at: Moment,
    /// Pid of the host.
    pub pid: u32,
    /// Its memory; `None` where the driver does not tell.
    pub used: Option<Bytes>,
    /// It draws, or is a client of MPS.
    pub other_kind: bool,
    /// Path of its container's cgroup, where known, whether that container was asked for or not.
    pub container: Option<Arc<str>>,
}

/// Reads segments, the newest first.
pub(super) struct Builder<'a> {
    from: Moment,
    to: Moment,
    wanted: &'a dyn Fn(&str) -> bool,
    window: Window,
    gpus: BTreeMap<String, (usize, GpuWindow)>,
    /// Paths that a newer segment names.
    seen: BTreeSet<Arc<str>>,
    gone: BTreeMap<Arc<str>, Moment>,
    records: usize,
    bytes: Vec<u8>,
}

/// What slots and places mean within one segment.
#[derive(Default)]
struct SegmentTable {
    slots: BTreeMap<u16, (Arc<str>, bool)>,
    facts: BTreeMap<Arc<str>, (Group, Option<Named>)>,
    engines: BTreeMap<u16, Engine>,
    devices: Vec<Device>,
    gone: BTreeMap<Arc<str>, Moment>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(boot: &str, from: Moment, to: Moment, wanted: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            from,
            to,
            wanted,
            window: Window { boot: boot.to_owned(), ..Window::default() },
            gpus: BTreeMap::new(),
            seen: BTreeSet::new(),
            gone: BTreeMap::new(),
            records: 0,
            bytes: Vec::new(),
        }
    }

    /// Takes a segment: what is in the file up to `written`, and what is not in it yet. One whose range is not known is
    /// read to see.
    pub(super) fn segment(&mut self, path: &Path, range: Option<Range>, written: u64, unwritten: &[u8]) {
        if range.is_some_and(|r| !r.meets(self.from, self.to)) {
            return;
        }
        if self.records >= MAX_RECORDS {
            self.window.cut = true;
            return;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        if written > 0 && segment::load(path, &mut bytes).is_err() {
            bytes.clear();
        }
        bytes.truncate(usize::try_from(written).unwrap_or(usize::MAX));
        bytes.extend_from_slice(unwritten);
        match Reader::new(&bytes) {
            Some(mut reader) => {
                self.read(&mut reader);
                self.window.torn += u64::from(reader.torn);
            }
            None => self.window.torn += 1,
        }
        self.bytes = bytes;
    }

    fn read(&mut self, reader: &mut Reader<'_>) {
        let mut meaning = SegmentTable::default();
        while let Some(item) = reader.next() {
            match item {
                Item::Table(notes) | Item::Notes(notes) => {
                    notes.into_iter().for_each(|n| meaning.take(n, self.wanted));
                }
                Item::Records(records) => {
                    let span = self.from..=self.to;
                    for r in records.iter().filter(|r| span.contains(&r.at)) {
                        self.record(r, &meaning);
                    }
                }
            }
        }
        for (path, at) in meaning.gone.iter().filter(|(p, _)| !self.seen.contains(*p)) {
            self.gone.insert(path.clone(), *at);
        }
        self.seen.extend(meaning.facts.into_keys().chain(meaning.gone.into_keys()));
    }

    fn record(&mut self, r: &Record, meaning: &SegmentTable) {
        self.records += 1;
        match r.kind {
            RecordKind::Round => self.window.rounds.push(*r),
            RecordKind::Node => self.window.node.push(*r),
            RecordKind::Container | RecordKind::Shm | RecordKind::Engine => self.of_container(r, meaning),
            RecordKind::Gpu | RecordKind::GpuHealth | RecordKind::GpuProcess => self.of_gpu(r, meaning),
        }
    }

    fn of_container(&mut self, r: &Record, meaning: &SegmentTable) {
        let Some((path, wanted)) = meaning.slots.get(&r.slot) else {
            self.window.unknown += 1;
            return;
        };
        if !wanted {
            self.records -= 1;
            return;
        }
        let Some((group, named)) = meaning.facts.get(path) else { return };
        let engine = meaning.engines.get(&r.slot);
        let container = self.window.containers.entry(path.to_string()).or_insert_with(|| ContainerWindow {
            group: group.clone(),
            named: named.clone(),
            engine: engine.cloned(),
            gone: None,
            records: Vec::new(),
        });
        // Names and engine come a moment after the container.
        if container.named.is_none() {
            container.named.clone_from(named);
        }
        if container.engine.is_none() {
            container.engine = engine.cloned();
        }
        container.records.push(*r);
    }

    fn of_gpu(&mut self, r: &Record, meaning: &SegmentTable) {
        let place = usize::from(r.slot);
        let Some(device) = meaning.devices.get(place) else {
            self.window.unknown += 1;
            return;
        };
        let (_, gpu) = self
            .gpus
            .entry(device.uuid.clone())
            .or_insert_with(|| (place, GpuWindow { device: device.clone(), ..GpuWindow::default() }));
        match r.kind {
            RecordKind::Gpu => gpu.readings.push(*r),
            RecordKind::GpuHealth => gpu.health.push(*r),
            _ => {
                let Some((pid, used, slot)) = r.process() else { return };
                let container = slot.and_then(|s| meaning.slots.get(&s)).map(|(path, _)| path.clone());
                gpu.processes.push(ProcessMemory {
                    at: r.at,
                    pid,
                    used,
                    other_kind: r.other_kind(),
                    container,
                });
            }
        }
    }

    pub(super) fn finish(mut self) -> Window {
        let mut gpus: Vec<(usize, GpuWindow)> = self.gpus.into_values().collect();
        gpus.order_by(|a, b| (a.0, &a.1.device.uuid).cmp(&(b.0, &b.1.device.uuid)));
        for (_, g) in &mut gpus {
            g.readings.order_by_key(|r| r.at);
            g.health.order_by_key(|r| r.at);
            g.processes.order_by_key(|p| (p.at, p.pid));
        }
        self.window.gpus = gpus.into_iter().map(|(_, g)| g).collect();
        self.window.node.order_by_key(|r| r.at);
        self.window.rounds.order_by_key(|r| r.at);
        for (path, c) in &mut self.window.containers {
            c.records.order_by_key(|r| r.at);
            c.gone = self.gone.get(path.as_str()).copied();
        }
        self.window
    }
}

impl SegmentTable {
    fn take(&mut self, note: Note, wanted: &dyn Fn(&str) -> bool) {
        match note {
            Note::Container { slot, group, named, .. } => {
                let path: Arc<str> = group.path().into();
                self.gone.remove(&path);
                self.slots.insert(slot, (path.clone(), wanted(&path)));
                self.facts.insert(path, (group, named));
            }
            Note::Gone { path, at } => {
                self.gone.insert(path.into(), at);
            }
            Note::Devices(devices) => self.devices = devices,
            Note::Engine { slot, engine } => {
                self.engines.insert(slot, engine);
            }
        }
    }
}
