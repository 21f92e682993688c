//! A window of the ring as evidence: both planes over time, as answers of Prometheus' HTTP API, which the core reads.
//!
//! Where cAdvisor, the DCGM exporter, the node exporter or the engine has a name for a value, it is told under that name
//! and in that unit, so that whoever reads a store's series reads these. The other names are those of the agent's own
//! metrics. `docs/series.md` lists all. All values of a round carry the round's time.
//!
//! `names.rs` is the table of names, `thin.rs` leaves out what says nothing new, `clock.rs` puts moments onto the wall,
//! `answer.rs` writes.

mod answer;
mod clock;
mod names;
mod thin;

use std::collections::BTreeMap;

use dualplane_core::evidence::RawFile;
use dualplane_core::knowledge::metrics::engines;
use dualplane_node::cri::Named;
use dualplane_node::sample::{Record, RecordKind};

use answer::Answer;
use clock::Clock;
use names::{CONTAINER, DEVICE, ENGINE, HEALTH, LAST_INCIDENT, Metric, NODE, RESTARTS, SHM, VRAM};

use thin::Point;

use crate::ring::{ContainerWindow, GpuWindow, ProcessMemory, Window};

/// Milliseconds between values of devices on which no process of the container was: they tell who else was there.
const FOREIGN_STEP_MS: i64 = 5000;
/// Processes of a device.
const MAX_PROCESSES: usize = 256;

/// Whose series they are.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// Node.
    pub node: String,
    /// Namespace; empty outside of Kubernetes.
    pub namespace: String,
    /// Pod; empty outside of Kubernetes, then the container's name stands for it.
    pub pod: String,
    /// Container.
    pub container: String,
    /// How its instance before this one died, where that was judged.
    pub last: Option<LastIncident>,
}

/// A verdict in the words of the metrics' labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastIncident {
    /// Class.
    pub class: String,
    /// Plane.
    pub plane: String,
    /// `death` or `kill`.
    pub kind: &'static str,
}

/// Pairs of a name and a value.
type Pairs = Vec<(&'static str, String)>;

impl Labels {
    fn pairs(&self) -> Pairs {
        let pod = if self.pod.is_empty() { &self.container } else { &self.pod };
        vec![
            ("namespace", self.namespace.clone()),
            ("pod", pod.clone()),
            ("container", self.container.clone()),
        ]
    }

    /// Of a container that knows its names itself.
    fn of(&self, named: Option<&Named>) -> Self {
        named.map_or_else(
            || self.clone(),
            |n| Self {
                node: self.node.clone(),
                namespace: n.namespace.clone(),
                pod: n.pod.clone(),
                container: n.container.clone(),
                last: self.last.clone(),
            },
        )
    }
}

/// The files `series/host.json`, `series/gpu.json`, `series/node.json` and `series/engine.json`; those without a value are
/// left out, and all where the window has no round, which tells what time it was.
///
/// Containers without names of their own are called as `who` says. Devices carry the names of the container whose
/// processes held memory there.
#[must_use]
pub fn matrix(window: &Window, who: &Labels) -> Vec<RawFile> {
    let Some(clock) = Clock::of(&window.rounds) else { return Vec::new() };
    let (mut host, mut engine) = (Answer::default(), Answer::default());
    for c in window.containers.values() {
        let who = who.of(c.named.as_ref());
        let labels = who.pairs();
        of_container(c, &labels, &clock, &mut host);
        if let Some(last) = &who.last {
            of_last_incident(c, labels.clone(), last, &clock, &mut host);
        }
        of_engine(c, labels, &clock, &mut engine);
    }
    let mut gpu = Answer::default();
    for g in &window.gpus {
        of_device(g, window, who, &clock, &mut gpu);
    }
    let mut node = Answer::default();
    let labels = vec![("node", who.node.clone()), ("instance", who.node.clone())];
    single(&clock, &window.node, Record::machine, NODE, &labels, &mut node);
    let all = [("host", host), ("gpu", gpu), ("node", node), ("engine", engine)];
    all.into_iter()
        .filter_map(|(name, answer)| Some(RawFile::new(format!("series/{name}.json"), answer.finish()?)))
        .collect()
}

/// Series of records, each by itself.
fn single<T>(
    clock: &Clock,
    records: &[Record],
    read: impl Fn(&Record) -> Option<T>,
    metrics: &[Metric<T>],
    labels: &Pairs,
    out: &mut Answer,
) {
    let values: Vec<(i64, T)> =
        records.iter().filter_map(|r| Some((clock.wall_ms(r.at), read(r)?))).collect();
    for m in metrics {
        let points = values.iter().filter_map(|(at, v)| Some((*at, (m.get)(v)?))).collect();
        out.put(m.name, labels, &thin::one(points, m.every));
    }
}

fn of_container(c: &ContainerWindow, labels: &Pairs, clock: &Clock, out: &mut Answer) {
    single(clock, &c.records, Record::memory, CONTAINER, labels, out);
    single(clock, &c.records, Record::shm_use, SHM, labels, out);
    // It stays for as long as the instance lives: told at its first value and at its last.
    let times = || c.records.iter().filter(|r| r.kind == RecordKind::Container).map(|r| clock.wall_ms(r.at));
    if let Some(restart) = c.named.as_ref().and_then(|n| n.restart) {
        let points = times().min().into_iter().chain(times().max()).map(|at| (at, f64::from(restart)));
        out.put(RESTARTS, labels, &thin::one(points.collect(), 0));
    }
}

/// Told as the restarts are.
fn of_last_incident(
    c: &ContainerWindow,
    mut labels: Pairs,
    last: &LastIncident,
    clock: &Clock,
    out: &mut Answer,
) {
    labels.extend([
        ("class", last.class.clone()),
        ("plane", last.plane.clone()),
        ("kind", last.kind.to_owned()),
    ]);
    let times = || c.records.iter().filter(|r| r.kind == RecordKind::Container).map(|r| clock.wall_ms(r.at));
    let points = times().min().into_iter().chain(times().max()).map(|at| (at, 1.0));
    out.put(LAST_INCIDENT, &labels, &thin::one(points.collect(), 0));
}

/// Under the engine's own names, where it has them.
fn of_engine(c: &ContainerWindow, mut labels: Pairs, clock: &Clock, out: &mut Answer) {
    let said = c.engine.as_ref();
    labels.extend(said.and_then(|e| e.model.clone()).map(|m| ("model_name", m)));
    let known = said.and_then(|e| engines().iter().find(|k| k.engine == e.engine));
    let names = known.map(|k| k.names().map(|n| n.map(ToOwned::to_owned)).into_iter().chain(k.rate_names()));
    let names = names.into_iter().flatten().chain(std::iter::repeat(None));
    for (field, ((own, unit), name)) in ENGINE.iter().zip(names).enumerate() {
        let of = |r: &Record| Some((clock.wall_ms(r.at), r.field(field)? as f64 / unit));
        let points = c.records.iter().filter(|r| r.kind == RecordKind::Engine).filter_map(of).collect();
        let mut labels = labels.clone();
        if name.is_none() {
            labels.extend(said.map(|e| ("engine", e.engine.clone())));
        }
        out.put(name.as_deref().unwrap_or(own), &labels, &thin::one(points, 0));
    }
}

fn of_device(g: &GpuWindow, window: &Window, who: &Labels, clock: &Clock, out: &mut Answer) {
    let d = &g.device;
    let mut labels = vec![
        ("Hostname", who.node.clone()),
        ("gpu", d.index.to_string()),
        ("UUID", d.uuid.clone()),
        ("modelName", d.name.clone()),
        ("pci_bus_id", pci_bus_id(&d.pci)),
    ];
    labels.extend(d.instance.map(|(i, _)| ("GPU_I_ID", i.to_string())));
    let owner = owner(g, window, who);
    let every = if owner.is_some() { 0 } else { FOREIGN_STEP_MS };
    let device = labels.clone();
    labels.extend(owner.map(|o| o.pairs()).unwrap_or_default());
    let readings: Vec<_> =
        g.readings.iter().filter_map(|r| Some((clock.wall_ms(r.at), r.reading()?))).collect();
    // Who sums them up looks for values of the same time: they are written together or not at all.
    let rows = readings.iter().map(|(at, r)| (*at, VRAM.iter().map(|m| (m.get)(r)).collect())).collect();
    for (m, points) in VRAM.iter().zip(thin::rows(rows, every)) {
        out.put(m.name, &labels, &points);
    }
    for m in DEVICE {
        let points = readings.iter().filter_map(|(at, r)| Some((*at, (m.get)(r)?))).collect();
        out.put(m.name, &labels, &thin::one(points, m.every.max(every)));
    }
    single(clock, &g.health, Record::health, HEALTH, &labels, out);
    processes(g, window, who, clock, &device, out);
}

/// The container whose processes held memory on a device: the one that is asked about before others.
fn owner(g: &GpuWindow, window: &Window, who: &Labels) -> Option<Labels> {
    let on = g.processes.iter().filter_map(|p| names_of(p, window, who));
    let mut found: Option<Labels> = None;
    for labels in on {
        if labels.container == who.container {
            return Some(labels);
        }
        found.get_or_insert(labels);
    }
    found
}

fn names_of(p: &ProcessMemory, window: &Window, who: &Labels) -> Option<Labels> {
    let c = window.containers.get(p.container.as_deref()?)?;
    Some(who.of(c.named.as_ref()))
}

fn processes(g: &GpuWindow, window: &Window, who: &Labels, clock: &Clock, device: &Pairs, out: &mut Answer) {
    type Process = (Option<Labels>, Vec<Point>);
    let mut by_pid: BTreeMap<u32, Process> = BTreeMap::new();
    for p in &g.processes {
        let Some(used) = p.used else { continue };
        if by_pid.len() >= MAX_PROCESSES && !by_pid.contains_key(&p.pid) {
            continue;
        }
        let (labels, points) = by_pid.entry(p.pid).or_insert_with(|| (names_of(p, window, who), Vec::new()));
        // The first record of a process may be older than the container's name.
        if labels.is_none() {
            *labels = names_of(p, window, who);
        }
        points.push((clock.wall_ms(p.at), used.0 as f64));
    }
    for (pid, (owner, points)) in by_pid {
        let mut labels = device.clone();
        labels.push(("pid", pid.to_string()));
        let every = if owner.is_some() { 0 } else { FOREIGN_STEP_MS };
        labels.extend(owner.map(|o| o.pairs()).unwrap_or_default());
        out.put("dualplane_gpu_process_memory_bytes", &labels, &thin::one(points, every));
    }
}

/// As the DCGM exporter writes `0000:4a:00`: `00000000:4A:00.0`.
fn pci_bus_id(address: &str) -> String {
    if address.is_empty() { String::new() } else { format!("0000{}.0", address.to_ascii_uppercase()) }
}

#[cfg(test)]
mod tests;
