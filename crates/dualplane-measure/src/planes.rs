//! Both planes each second, in a thread of their own: the server's cgroup, its cards, the engine's page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dualplane_base::process::of_path;
use dualplane_node::cgroup::{Depth, Group, Hierarchy, Kind, Memory, Reader};
use dualplane_node::gpu::{Device, Event, GpuProcess, Gpus, Health, Reading as Card};
use dualplane_node::node::{ProcessState, cgroup_of, host_cgroups, host_pids, life, list, processes};
use dualplane_runs::{Faults, Host, Process, Sample};

#[cfg(test)]
mod leaks;

pub use crate::agent::Ask;
use crate::engine::Page;
use crate::known::Known;

/// Between two samples.
const EACH: Duration = Duration::from_secs(1);
/// Samples between two listings of processes.
const LISTING: u64 = 5;
/// Bytes of the largest statistics file of a group.
const BUFFER: usize = 64 << 10;
/// Processes of a tree that is followed where there is no group.
const MAX_TREE: usize = 512;

/// Which server is read.
#[derive(Default)]
pub struct Whose {
    /// A process of it; those that it started belong to it.
    pub pid: Option<u32>,
    /// Its group below the memory controller, instead of that of the process.
    pub cgroup: Option<String>,
    /// Where groups are mounted: `/sys/fs/cgroup`.
    pub cgroups: PathBuf,
    /// `/proc`.
    pub proc_root: PathBuf,
    /// Its page of metrics.
    pub metrics: Option<String>,
    /// The key that it asks for.
    pub key: Option<String>,
    /// An agent on the server's node, instead of this machine.
    pub agent: Option<Ask>,
    /// Cards of the machine.
    pub gpus: Option<Box<dyn Gpus>>,
}

/// What was read.
#[derive(Debug)]
pub enum Reading {
    /// Both planes.
    Sample(Box<Sample>),
    /// What processes hold.
    Processes(Vec<Process>),
    /// Errors of the cards.
    Faults(Faults),
    /// The server is gone.
    Dead,
}

/// The thread that reads.
#[derive(Debug)]
pub struct Reads {
    /// What it read.
    pub readings: Receiver<Reading>,
    known: Arc<Mutex<Known>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reads {
    /// By what the kernel's lines name the server.
    #[must_use]
    pub fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Starts to read, on a clock. Dropping it ends the thread.
#[must_use]
pub fn start(whose: Whose, clock: Instant) -> Reads {
    let (to, readings) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let known = Arc::new(Mutex::new(Known {
        of_machine: host_pids(&whose.proc_root) == Some(true) && host_cgroups(&whose.proc_root) == Some(true),
        ..Known::default()
    }));
    let of_thread = Arc::clone(&known);
    let work = move || follow(whose, clock, &to, &flag, &of_thread);
    let thread = std::thread::Builder::new().name("planes".into()).spawn(work).ok();
    Reads { readings, known, stop, thread }
}

fn follow(whose: Whose, clock: Instant, to: &Sender<Reading>, stop: &AtomicBool, known: &Mutex<Known>) {
    let mut state = State::new(whose);
    let mut round = 0_u64;
    let mut told = false;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        if state.whose.pid.is_some() {
            let pids = state.pids();
            known.lock().unwrap_or_else(PoisonError::into_inner).saw(state.path(), &pids);
        }
        let sample = state.sample(clock);
        if to.send(Reading::Sample(Box::new(sample))).is_err() {
            return;
        }
        if let Some(faults) = state.faults()
            && to.send(Reading::Faults(faults)).is_err()
        {
            return;
        }
        if round.is_multiple_of(LISTING) {
            let all = state.listing();
            if !all.is_empty() && to.send(Reading::Processes(all)).is_err() {
                return;
            }
        }
        if !told && state.is_dead() {
            told = true;
            let _ = to.send(Reading::Dead);
        }
        round += 1;
        while began.elapsed() < EACH && !stop.load(Ordering::Relaxed) {
            // The end of the measurement unparks.
            std::thread::park_timeout(EACH.saturating_sub(began.elapsed()).min(Duration::from_millis(50)));
            if !told && state.is_dead() {
                told = true;
                let _ = to.send(Reading::Dead);
            }
        }
    }
}

struct State {
    whose: Whose,
    hierarchy: Option<Hierarchy>,
    /// The group that is open, by its path.
    group: Option<(String, Reader)>,
    memory: Memory,
    buffer: Vec<u8>,
    page: Option<Page>,
    devices: Vec<Device>,
    cards: Vec<Card>,
    users: Vec<GpuProcess>,
    /// When cards were read last.
    read: Instant,
    events: Vec<Event>,
    health: Vec<Health>,
    told: Option<Faults>,
}

impl State {
    fn new(mut whose: Whose) -> Self {
        let mut devices = Vec::new();
        if let Some(gpus) = &mut whose.gpus {
            let _ = gpus.devices(&mut devices);
        }
        Self {
            hierarchy: Hierarchy::below(&whose.cgroups),
            page: whose.metrics.clone().map(Page::new),
            whose,
            group: None,
            memory: Memory::default(),
            buffer: vec![0; BUFFER],
            devices,
            cards: Vec::new(),
            users: Vec::new(),
            read: Instant::now(),
            events: Vec::new(),
            health: Vec::new(),
            told: None,
        }
    }

    /// The path of the server's group; none where it shares the one of everybody.
    fn path(&self) -> Option<String> {
        if let Some(own) = &self.whose.cgroup {
            return Some(own.clone());
        }
        let path = cgroup_of(&self.whose.proc_root, self.whose.pid?)?.path;
        let ours = cgroup_of(&self.whose.proc_root, std::process::id()).map(|p| p.path);
        // What holds us as well is no measure of the server alone.
        (!path.is_empty() && path != "/" && Some(&path) != ours.as_ref()).then_some(path)
    }

    fn sample(&mut self, clock: Instant) -> Sample {
        let mut s = Sample { at: clock.elapsed().as_secs_f64(), ..Sample::default() };
        if let Some(agent) = &mut self.whose.agent {
            self.told = agent.read(&mut s);
        } else {
            s.host = self.host();
            s.cpu_seconds = self.cpu();
            self.gpu(&mut s);
        }
        if let Some(told) = self.page.as_mut().and_then(|p| p.ask(self.whose.key.as_deref())) {
            s.kv = told.counts.kv_use;
            s.running = told.counts.running;
            s.waiting = told.counts.waiting;
            s.preemptions = told.counts.preemptions;
            s.prefix = told.prefix;
        }
        s
    }

    fn host(&mut self) -> Option<Host> {
        let Some(path) = self.path() else {
            return self.whose.pid.and_then(|pid| tree(&self.whose.proc_root, pid));
        };
        let hierarchy = self.hierarchy.as_ref()?;
        // A server that moves itself into a group of its own does so after its start.
        if self.group.as_ref().is_none_or(|(p, _)| *p != path) {
            let version = match hierarchy.version {
                dualplane_node::cgroup::Version::V1 => 1,
                dualplane_node::cgroup::Version::V2 => 2,
            };
            let group = Group { kind: Kind::Container, identity: of_path(&path, version) };
            let reader = Reader::open(hierarchy, &group).ok()?;
            self.memory = Memory::default();
            self.group = Some((path, reader));
        }
        let (_, reader) = self.group.as_ref()?;
        if reader.read(Depth::Full, &mut self.buffer, &mut self.memory).is_err() {
            self.group = None;
            return None;
        }
        let m = &self.memory;
        let b = |v: Option<dualplane_base::units::Bytes>| v.map(|b| b.0);
        Some(Host {
            current: b(m.current),
            working_set: b(m.working_set()),
            anon: b(m.anon),
            shmem: b(m.shmem),
            file: b(m.file),
            pinned: b(m.unevictable),
            kernel: b(m.kernel),
            limit: m.limit.and_then(|l| b(l.bytes())),
            peak: b(m.peak),
        })
    }

    /// Processor time of the group, in seconds.
    fn cpu(&self) -> Option<f64> {
        let (path, _) = self.group.as_ref()?;
        let below = path.trim_start_matches('/');
        let root = &self.whose.cgroups;
        if let Ok(text) = fs::read_to_string(root.join(below).join("cpu.stat")) {
            let us = text.lines().find_map(|l| l.strip_prefix("usage_usec "))?;
            return us.trim().parse::<f64>().ok().map(|us| us / 1e6);
        }
        let v1 = ["cpuacct", "cpu,cpuacct"].map(|c| root.join(c).join(below).join("cpuacct.usage"));
        let ns = v1.iter().find_map(|p| fs::read_to_string(p).ok())?;
        ns.trim().parse::<f64>().ok().map(|ns| ns / 1e9)
    }

    fn pids(&self) -> Vec<u32> {
        match (self.path(), &self.hierarchy) {
            (Some(path), Some(h)) => processes(&h.memory.join(path.trim_start_matches('/'))),
            _ => self.whose.pid.map(|p| family(&self.whose.proc_root, p)).unwrap_or_default(),
        }
    }

    /// VRAM of the cards on which the server has memory; of all cards where nobody says whose processes they are.
    fn gpu(&mut self, s: &mut Sample) {
        let Some(gpus) = &mut self.whose.gpus else { return };
        if self.devices.is_empty() {
            return;
        }
        // A table is played by this clock; cards have their own.
        gpus.advance(self.read.elapsed());
        self.read = Instant::now();
        gpus.read(&mut self.cards);
        gpus.processes(&mut self.users);
        let pids = self.pids();
        let own: Vec<&GpuProcess> = self.users.iter().filter(|u| pids.contains(&u.pid)).collect();
        // Drivers in some containers tell no processes at all.
        let nobody_says = pids.is_empty() || self.users.is_empty();
        let on_card = |c: &&Card| nobody_says || own.iter().any(|u| u.device == c.device);
        let cards: Vec<&Card> = self.cards.iter().filter(on_card).collect();
        if cards.is_empty() {
            return;
        }
        let sum = |f: fn(&Card) -> Option<u64>| {
            cards.iter().filter_map(|c| f(c)).reduce(|a, b| a.saturating_add(b))
        };
        s.vram_total = sum(|c| c.total.map(|b| b.0));
        // What the server itself has, where the driver tells; else all that is used on its cards.
        let told: Option<u64> =
            own.iter().map(|u| u.used.map(|b| b.0)).sum::<Option<u64>>().filter(|n| *n > 0);
        s.vram = told.or_else(|| sum(|c| c.used.map(|b| b.0)));
        let busy: Vec<f64> = cards.iter().filter_map(|c| c.busy).map(f64::from).collect();
        s.gpu = (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64 / 100.0);
        s.watts = sum(|c| c.power_mw.map(u64::from)).map(|mw| mw as f64 / 1000.0);
    }

    /// Errors that the cards told since the last time; none where there are no cards.
    fn faults(&mut self) -> Option<Faults> {
        if let Some(told) = self.told.take() {
            return Some(told);
        }
        let gpus = self.whose.gpus.as_mut().filter(|_| !self.devices.is_empty())?;
        self.events.clear();
        gpus.events(&mut self.events);
        gpus.health(&mut self.health);
        let sum = |of: fn(&Health) -> Option<u64>| {
            self.health.iter().filter_map(of).reduce(|a, b| a.saturating_add(b))
        };
        let rows = |h: &Health| {
            let both = [h.remapped_corrected, h.remapped_uncorrected];
            both.iter().flatten().next()?;
            Some(both.iter().flatten().map(|n| u64::from(*n)).sum())
        };
        Some(Faults {
            xids: self.events.iter().filter_map(|e| u32::try_from(e.xid?).ok()).collect(),
            ecc_corrected: sum(|h| h.ecc_corrected),
            ecc_uncorrected: sum(|h| h.ecc_uncorrected),
            remapped: sum(rows),
        })
    }

    fn listing(&self) -> Vec<Process> {
        let (path, hierarchy) = (self.path(), self.hierarchy.as_ref());
        let mut vram: BTreeMap<u32, u64> = BTreeMap::new();
        for u in &self.users {
            if let Some(used) = u.used {
                *vram.entry(u.pid).or_default() += used.0;
            }
        }
        let all = match (path, hierarchy) {
            (Some(path), Some(h)) => {
                list(&h.memory.join(path.trim_start_matches('/')), &self.whose.proc_root, false).processes
            }
            _ => Vec::new(),
        };
        let of = |p: dualplane_node::node::Proc| {
            let parts = [p.anon, p.file, p.shmem];
            let told = parts.iter().flatten().next().is_some();
            Process {
                pid: p.pid,
                name: p.comm,
                resident: told.then(|| parts.iter().flatten().map(|b| b.0).sum()),
                anon: p.anon.map(|b| b.0),
                vram: vram.get(&p.pid).copied(),
            }
        };
        all.into_iter().map(of).collect()
    }

    fn is_dead(&self) -> bool {
        let ended = |pid| life(&self.whose.proc_root, pid).is_some_and(|s| s.life != ProcessState::Running);
        self.whose.pid.is_some_and(ended)
    }
}

/// A process and all that it started.
fn family(proc_root: &Path, pid: u32) -> Vec<u32> {
    // Kernels without this file are rare; all processes of the machine are looked at there.
    let told = proc_root.join(format!("self/task/{}/children", std::process::id())).exists();
    let parents = if told { BTreeMap::new() } else { parents(proc_root) };
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(p) = all.get(next).copied() {
        next += 1;
        match parents.get(&p) {
            _ if all.len() >= MAX_TREE => break,
            Some(children) => all.extend(children),
            None if told => all.extend(children(proc_root, p)),
            None => {}
        }
    }
    all
}

/// What the threads of a process started.
fn children(proc_root: &Path, pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(proc_root.join(pid.to_string()).join("task")).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for thread in threads {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|p| p.parse::<u32>().ok()));
    }
    all
}

/// The children of each process.
fn parents(proc_root: &Path) -> BTreeMap<u32, Vec<u32>> {
    let mut parents: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir(proc_root).into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            parents.entry(parent).or_default().push(child);
        }
    }
    parents
}

/// Memory of a server without a group of its own: what its processes hold, each page once.
fn tree(proc_root: &Path, pid: u32) -> Option<Host> {
    let mut host = Host::default();
    for p in family(proc_root, pid) {
        let Ok(text) = fs::read_to_string(proc_root.join(p.to_string()).join("smaps_rollup")) else {
            continue;
        };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(key), Some(n)) = (words.next(), words.next().and_then(|n| n.parse::<u64>().ok()))
            else {
                continue;
            };
            let field = match key {
                "Pss_Anon:" => &mut host.anon,
                "Pss_File:" => &mut host.file,
                "Pss_Shmem:" => &mut host.shmem,
                "Locked:" => &mut host.pinned,
                _ => continue,
            };
            *field = Some(field.unwrap_or(0) + n * 1024);
        }
    }
    host.anon?;
    Some(host)
}
