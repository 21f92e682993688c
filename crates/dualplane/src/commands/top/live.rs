//! Frames of this machine, from the rounds of the node's observer.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dualplane_agent::incident::Summary;
use dualplane_agent::observe::{Config, Observer};
use dualplane_agent::{ContainerView, GpuView, View};
use dualplane_base::order::Order as _;
use dualplane_base::time::Stamp;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::framing::parse_kmsg;
use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::Redactor;
use dualplane_node::cgroup::{Limit, Pressure};
use dualplane_node::clock::Moment;
use dualplane_node::gpu::{Fake, Gpus, Nvml, of_machine};
use dualplane_node::node::{self, Proc};

use super::frame::{Container, Engine, Frame, Gpu, Holder, Incident, Node, Process, SCHEMA, Vram};
use crate::args::TopArgs;
use crate::commands::Failure;

/// Verdicts that are shown.
const MAX_INCIDENTS: usize = 20;
/// Verdicts that are read, for the last one on each container.
const MAX_READ: usize = 256;
/// Files of the agent's state that are looked at; it keeps some hundreds.
const MAX_FILES: usize = 4096;
/// Bytes of a summary: some lines.
const MAX_SUMMARY: u64 = 64 << 10;
/// Rounds between two looks at the verdicts.
const INCIDENT_ROUNDS: u64 = 5;
/// Rounds before one frame is printed, and how long engines may take.
const MAX_ONCE: usize = 60;
const ENGINE_WAIT: Duration = Duration::from_millis(1500);
/// Characters of a command line that are kept.
const MAX_COMMAND: usize = 4096;

/// Processes of which containers are put into a frame.
pub(crate) enum Focus<'a> {
    All,
    One(Option<&'a str>),
}

/// This machine.
pub(crate) struct Live<'k> {
    observer: Observer,
    knowledge: &'k Knowledge,
    proc_root: PathBuf,
    state: PathBuf,
    name: String,
    incidents: Vec<Incident>,
    /// Class of the last verdict on each container, by its name.
    last: HashMap<String, String>,
    rounds: u64,
}

impl<'k> Live<'k> {
    pub(crate) fn start(args: &TopArgs, knowledge: &'k Knowledge, once: bool) -> Result<Self, Failure> {
        let root = |path: &str| args.host_root.join(path);
        let mut config =
            Config { pod_logs: root("var/log/pods"), links: root("var/log/containers"), ..Config::default() };
        config.pod_resources = Some(root("var/lib/kubelet/pod-resources/kubelet.sock"));
        config.sample.cgroups = root("sys/fs/cgroup");
        config.sample.proc_root = root("proc");
        config.sample.rate.calm = if once { Duration::ZERO } else { args.interval };
        // A person reads once an interval; rounds between would only cost.
        config.sample.rate.account = Duration::ZERO;
        config.sample.wanted.services = args
            .service
            .iter()
            .map(|s| if s.contains('.') { s.clone() } else { format!("{s}.service") })
            .collect();
        let gpus: Box<dyn Gpus> = match &args.gpu_table {
            None => of_machine(Nvml::boxed(None), &root("sys")),
            Some(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|source| Failure::Unreadable { path: path.clone(), source })?;
                Box::new(
                    Fake::from_json(&text)
                        .map_err(|e| Failure::Flag { flag: "--gpu-table", why: e.to_string() })?,
                )
            }
        };
        let proc_root = config.sample.proc_root.clone();
        let name = fs::read_to_string(proc_root.join("sys/kernel/hostname")).unwrap_or_default();
        Ok(Self {
            observer: Observer::new(config, gpus).map_err(Failure::Runtime)?,
            knowledge,
            proc_root,
            state: args.state.clone(),
            name: name.trim().to_owned(),
            incidents: Vec::new(),
            last: HashMap::new(),
            rounds: 0,
        })
    }

    /// Trends of the minutes before, where an agent records here.
    pub(crate) fn history(&self, interval: Duration) -> HashMap<String, super::model::Trend> {
        super::history::read(&self.state, &self.proc_root, interval)
    }

    /// When the next reading is due.
    pub(crate) fn wait(&self) -> Duration {
        self.observer.due().since(Moment::now())
    }

    /// Reads.
    pub(crate) fn round(&mut self) {
        self.observer.round();
        if self.rounds.is_multiple_of(INCIDENT_ROUNDS) {
            self.incidents = incidents(&self.state);
            self.last = last_classes(&self.incidents);
            self.incidents.truncate(MAX_INCIDENTS);
        }
        self.rounds += 1;
    }

    /// One frame with all that can be had at once: each container's processes listed, each engine asked.
    pub(crate) fn once(&mut self, focus: &Focus<'_>) -> Frame {
        let began = Moment::now();
        self.round();
        // Some containers are listed in each round.
        for _ in 0..self.observer.view().containers.len().min(MAX_ONCE) {
            self.round();
        }
        while (self.waits_for_engines() || self.observer.waits_for_kubelet())
            && Moment::now().since(began) < ENGINE_WAIT
        {
            std::thread::park_timeout(Duration::from_millis(20));
            self.round();
        }
        self.frame(focus)
    }

    /// Whether some engine can be expected to have been asked and has not answered yet.
    fn waits_for_engines(&self) -> bool {
        let engine = |c: &&ContainerView| {
            dualplane_agent::engine::candidate(c.slot, &c.processes.processes, &[]).is_some()
        };
        self.observer.view().containers.values().filter(engine).any(|c| c.engine.is_none())
    }

    /// The last reading as a frame.
    pub(crate) fn frame(&self, focus: &Focus<'_>) -> Frame {
        let view = self.observer.view();
        let names: HashMap<u16, String> = view.containers.values().map(|c| (c.slot, name(c))).collect();
        let indexes = indexes(&view.gpus);
        let linked = view.containers.values().any(|c| c.named.is_some());
        let shown = view.containers.values().filter(|c| !is_sandbox(c, linked));
        let mut redactor = Redactor::new(self.knowledge);
        let containers = shown.map(|c| {
            let mut out = container(c, view, &indexes, names.get(&c.slot));
            out.last_class = self.last.get(c.title().as_str()).cloned();
            let wanted = match focus {
                Focus::All => true,
                Focus::One(id) => *id == Some(out.id.as_str()),
            };
            if wanted {
                out.processes = self.processes(c, &mut redactor);
            }
            out
        });
        let containers = containers.collect();
        Frame {
            schema: SCHEMA,
            at: Stamp::Wall { ms: view.wall_ms, zoned: true, year: true }.show(),
            ms: view.wall_ms,
            node: self.node(view),
            gpus: view.gpus.iter().zip(&indexes).map(|(g, i)| gpu(g, i, &names)).collect(),
            containers,
            incidents: self.incidents.clone(),
            gaps: self.gaps(view),
        }
    }

    fn node(&self, view: &View) -> Node {
        let m = &view.machine;
        let n = |b: Option<Bytes>| b.map(|b| b.0);
        let swap = m.swap_total.zip(m.swap_free).map(|(t, f)| t.saturating_sub(f).0);
        Node {
            name: self.name.clone(),
            total: n(m.total),
            available: n(m.available),
            shmem: n(m.shmem),
            swap_total: n(m.swap_total),
            swap_used: swap,
            pressure: pressure(m.pressure),
            oom_kills: m.oom_kill,
        }
    }

    /// Listed now: the view's own list may be minutes old.
    fn processes(&self, c: &ContainerView, redactor: &mut Redactor<'_>) -> Vec<Process> {
        let Some(h) = self.observer.sampler().hierarchy() else { return Vec::new() };
        let listing = node::list(&h.dir(&c.group), &self.proc_root, false);
        let vram = |pid: u32| {
            c.vram.iter().filter(|h| h.pid == pid).filter_map(|h| h.used).map(|b| b.0).reduce(|a, b| a + b)
        };
        listing.processes.iter().map(|p| process(p, vram(p.pid), redactor)).collect()
    }

    /// What a person should know of what is missing.
    fn gaps(&self, view: &View) -> Vec<String> {
        let mut out = Vec::new();
        let sampler = self.observer.sampler();
        if sampler.hierarchy().is_none() {
            out.push("found no cgroup memory controller: cannot read containers".to_owned());
        } else if view.containers.is_empty() {
            out.push("found no container; name a systemd unit with --service UNIT".to_owned());
        }
        if let Some(gap) = &view.gpu_gap {
            out.push(format!("GPUs: {gap}"));
        }
        let (unread, unopened) = (sampler.containers().unread, sampler.containers().unopened);
        if unread + unopened > 0 {
            out.push(format!(
                "could not read {unread} cgroups and {unopened} cgroup files; run as root to see them"
            ));
        }
        let pids = view.gpus.iter().flat_map(|g| &g.processes).filter(|(_, slot)| slot.is_none()).count();
        if pids > 0 {
            out.push(format!("{pids} processes on GPUs belong to no container shown here"));
        }
        if sampler.gpu_late() > 2 {
            out.push(format!("the GPU driver was late {} times", sampler.gpu_late()));
        }
        out
    }
}

/// `0`, and `0.1` for a MIG device.
fn indexes(gpus: &[GpuView]) -> Vec<String> {
    let mut of_card: HashMap<u16, u32> = HashMap::new();
    let mut one = |g: &GpuView| match g.device.card {
        None => g.device.index.to_string(),
        Some(card) => {
            let n = of_card.entry(card.0).or_insert(0);
            *n += 1;
            format!("{}.{}", g.device.index, *n - 1)
        }
    };
    gpus.iter().map(&mut one).collect()
}

/// A pod's sandbox holds its namespaces and nothing else. It has no log, so the kubelet links none: where the links of
/// others can be read, one of a pod without a name is a sandbox, whatever its program is called.
fn is_sandbox(c: &ContainerView, linked: bool) -> bool {
    let processes = &c.processes.processes;
    let pauses = processes.len() == 1 && processes.iter().all(|p| p.comm == "pause");
    c.named.is_none() && c.group.identity.pod_uid.is_some() && (linked || pauses)
}

/// A name; outside of Kubernetes with the program that runs there.
fn name(c: &ContainerView) -> String {
    let title = c.title();
    let first = c.processes.processes.iter().min_by_key(|p| p.pid);
    match (&c.named, &c.group.identity.container_id, first) {
        (None, Some(_), Some(p)) => format!("{title} {}", p.comm),
        _ => title,
    }
}

fn container(c: &ContainerView, view: &View, indexes: &[String], name: Option<&String>) -> Container {
    let (m, n) = (&c.memory, |b: Option<Bytes>| b.map(|b| b.0));
    let mut vram: Vec<Vram> = Vec::new();
    for h in &c.vram {
        let at = usize::from(h.device);
        let (Some(index), Some(gpu)) = (indexes.get(at), view.gpus.get(at)) else { continue };
        let known = vram.iter().position(|v| v.gpu == *index);
        match known.and_then(|i| vram.get_mut(i)) {
            Some(v) => v.used = v.used.into_iter().chain(n(h.used)).reduce(u64::saturating_add),
            None => vram.push(Vram { gpu: index.clone(), used: n(h.used), total: n(gpu.reading.total) }),
        }
    }
    // A card that it was given and does not use is its own as well.
    for (at, gpu) in c.given.iter().filter_map(|g| view.device_of(g)) {
        let Some(index) = indexes.get(usize::from(at)) else { continue };
        if vram.iter().all(|v| v.gpu != *index) {
            vram.push(Vram { gpu: index.clone(), used: None, total: n(gpu.reading.total) });
        }
    }
    vram.order_by(|a, b| (a.gpu.len(), &a.gpu).cmp(&(b.gpu.len(), &b.gpu)));
    Container {
        id: c.group.path().to_owned(),
        name: name.cloned().unwrap_or_default(),
        namespace: c.named.as_ref().map(|n| n.namespace.clone()),
        limit: n(m.limit.and_then(Limit::bytes)),
        working_set: n(m.working_set()),
        usage: n(m.current),
        peak: n(m.peak),
        anon: n(m.anon),
        shmem: n(m.shmem),
        file: m.file.map(|f| f.saturating_sub(m.shmem.unwrap_or_default()).0),
        swap: n(m.swap),
        pressure: pressure(m.pressure),
        oom_kills: m.oom_kill,
        restarts: c.named.as_ref().and_then(|n| n.restart).map(u64::from),
        last_class: None,
        vram,
        engine: c.engine.as_ref().map(|e| Engine {
            name: e.engine.to_owned(),
            model: e.model.clone(),
            kv_use: e.kv_use,
            running: e.running,
            waiting: e.waiting,
            preemptions: e.preemptions,
            age_s: Some(view.at.since(e.at).as_secs()),
        }),
        processes: Vec::new(),
    }
}

fn gpu(g: &GpuView, index: &str, names: &HashMap<u16, String>) -> Gpu {
    let r = &g.reading;
    let told = g.processes.iter().map(|(p, _)| p.used.map(|b| b.0)).sum::<Option<u64>>();
    Gpu {
        index: index.to_owned(),
        uuid: g.device.uuid.clone(),
        name: g.device.name.clone(),
        total: r.total.map(|b| b.0),
        used: r.used.map(|b| b.0),
        other: r.used.zip(told).map(|(u, t)| u.0.saturating_sub(t)),
        busy: r.busy,
        celsius: r.celsius,
        throttled: r.throttled(),
        holders: g
            .processes
            .iter()
            .map(|(p, slot)| Holder {
                pid: p.pid,
                container: slot.and_then(|s| names.get(&s)).cloned(),
                used: p.used.map(|b| b.0),
            })
            .collect(),
    }
}

fn process(p: &Proc, vram: Option<u64>, redactor: &mut Redactor<'_>) -> Process {
    // As a list, so that a value behind a secret's flag is known.
    let mut value = serde_json::json!({ "command": p.words });
    redactor.json(&mut value);
    let words = value.get("command").and_then(serde_json::Value::as_array);
    let words: Vec<&str> = words.into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
    let n = |b: Option<Bytes>| b.map(|b| b.0);
    Process {
        pid: p.pid,
        comm: p.comm.clone(),
        command: dualplane_base::text::shorten(&words.join(" "), MAX_COMMAND).into_owned(),
        anon: n(p.anon),
        file: n(p.file),
        shmem: n(p.shmem),
        swap: n(p.swap),
        vram,
    }
}

fn pressure(p: Pressure) -> Option<f64> {
    p.full_avg10.map(|hundredths| hundredths as f64 / 10_000.0)
}

/// Summaries of the agent, the newest first. Names begin with the time.
fn incidents(state: &Path) -> Vec<Incident> {
    let entries = fs::read_dir(state.join("incidents")).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = entries
        .take(MAX_FILES)
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    files.iter().rev().take(MAX_READ).filter_map(|p| incident(p)).collect()
}

/// The newest verdict on each container.
fn last_classes(newest_first: &[Incident]) -> HashMap<String, String> {
    let mut out = HashMap::new();
    for i in newest_first {
        if let Some(class) = &i.class {
            out.entry(i.name.clone()).or_insert_with(|| class.clone());
        }
    }
    out
}

fn incident(path: &Path) -> Option<Incident> {
    let mut text = Vec::new();
    // A link or a pipe in the folder is none of the agent's.
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    fs::File::open(path).ok()?.take(MAX_SUMMARY).read_to_end(&mut text).ok()?;
    let s: Summary = serde_json::from_slice(&text).ok()?;
    let name = [&s.namespace, &s.pod, &s.container].into_iter().filter(|p| !p.is_empty());
    let name: Vec<&str> = name.map(String::as_str).collect();
    // An older agent kept the record as the kernel prints it.
    let said = |t: String| parse_kmsg(&t).map(|(_, text)| text.to_owned()).unwrap_or(t);
    Some(Incident {
        at: s.died_at.clone(),
        name: name.join("/"),
        class: s.class,
        trigger: s.trigger.map(said),
    })
}
