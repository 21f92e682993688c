//! The first thread: waits, samples, listens to the kernel, notices ends and freezes them.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use dualplane_core::knowledge::Knowledge;
use dualplane_core::redact::Redactor;
use dualplane_node::clock::{Moment, boot_id};
use dualplane_node::cri::Instances;
use dualplane_node::kmsg::{Kernel, KernelMessage, Source, State as KernelState};
use dualplane_node::sample::SampleEvent;
use serde_json::{Value, json};

use super::bundle::Author;
use super::config::{Config, Counts, Dependencies, RecorderError};
use super::container_ref::ContainerRef;
use super::crash_loops::CrashLoops;
use super::ends::LateNews;
use super::freeze::Freeze;
use super::judge::{InstanceEvent, JudgeWorker, Task};
use super::keeper::{Keeper, KeeperEvent, Shared, incidents_dir};
use super::origin::from_exec;
use super::outside::Judged;
use super::quotes::{PidsKnown, RecentOomKills};
use super::seen_instances::SeenInstances;
use super::shared_ring::{Notes, SharedRing};
use super::wake::Waker;
use crate::health::Health;
use crate::incident::{Kind, State, Store};
use crate::observe::Observer;
use crate::ring::{Ring, RingCounts, RingLimits};
use crate::view::{ContainerView, View, XidTally};

/// Between two looks at groups, where the kernel says that some came or went.
const SWEEP: Duration = Duration::from_millis(20);
/// A log of an instance that ended before the agent began is kept where it is at most so old.
pub(super) const OLD_LOG: Duration = Duration::from_secs(60 * 60);
/// Share of the disk's budget for the ring: 3 of 8.
const RING_SHARE: (u64, u64) = (3, 8);

/// The flight recorder.
pub struct Recorder {
    pub(super) config: Config,
    pub(super) boot: String,
    pub(super) observer: Observer,
    pub(super) wake: Waker,
    pub(super) kernel: Option<Kernel>,
    /// What the kernel said before this run: for quoting, not for counting.
    pub(super) history: Option<Kernel>,
    pub(super) records: RecentOomKills,
    pub(super) saved: Moment,
    pub(super) tape: SharedRing,
    pub(super) notes: Notes,
    pub(super) instances: Instances,
    /// When groups last came or went, and when the log folders were last looked into.
    pub(super) stirred: Moment,
    pub(super) looked_at_logs: Moment,
    pub(super) late: Vec<LateNews>,
    /// UIDs of pods of which an end was told without the container's name, and when.
    pub(super) ended_nameless: HashMap<String, Moment>,
    pub(super) loops: CrashLoops,
    /// Instances whose end is kept or on its way: uid, container, restart.
    pub(super) seen: SeenInstances,
    pub(super) nameless: Vec<(Moment, ContainerView)>,
    pub(super) kills: HashMap<u16, (u64, Moment)>,
    pub(super) kill_told: HashMap<u16, Moment>,
    pub(super) sweep_due: Option<Moment>,
    pub(super) swept: Moment,
    /// The walk whose directories are watched.
    pub(super) walks: u64,
    pub(super) frozen: u64,
    pub(super) began: Moment,
    pub(super) counts: Counts,
    pub(super) health: Arc<Health>,
    /// When the kernel's log was last tried.
    pub(super) kernel_tried: Moment,
    /// The driver told of GPUs before, the kubelet of those it gave.
    pub(super) gpus_before: bool,
    pub(super) kubelet_before: bool,
    pub(super) shared: Arc<Shared>,
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) jobs: Option<Sender<Freeze>>,
    pub(super) news: Sender<InstanceEvent>,
    pub(super) events: Receiver<KeeperEvent>,
    pub(super) threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("config", &self.config)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// Opens the state, takes up what an earlier run left, and takes the first round.
    ///
    /// # Errors
    /// The state's folder cannot be used, or another agent uses it.
    pub fn new(config: Config, parts: Dependencies) -> Result<Self, RecorderError> {
        let proc_root = &config.observe.sample.proc_root;
        let boot = boot_id(proc_root)
            .ok_or_else(|| RecorderError::NoBoot(proc_root.join("sys/kernel/random/boot_id")))?;
        let knowledge = Arc::new(Knowledge::embedded()?);
        let ring_bytes = config.disk / RING_SHARE.1 * RING_SHARE.0;
        let limits = RingLimits { bytes: ring_bytes, ..RingLimits::default() };
        let ring_dir = config.state.join("ring");
        let at = |path: PathBuf| move |source| RecorderError::State { path, source };
        std::fs::create_dir_all(&ring_dir).map_err(at(ring_dir.clone()))?;
        let (ring, recovered) = Ring::open(&ring_dir, limits, &boot).map_err(at(ring_dir.clone()))?;
        let store = Store::open(&incidents_dir(&config.state), config.disk.saturating_sub(ring_bytes))?;
        let observer = Observer::new(config.observe.clone(), parts.gpus).map_err(RecorderError::Thread)?;
        let (kernel, history) = kernels(&config, &boot);
        let tape = SharedRing { ring: Arc::new(Mutex::new(ring)), node: config.node.clone() };
        let (jobs, frozen) = channel();
        let (tasks, judged) = channel();
        let (news, heard) = channel();
        let (sender, events) = channel();
        let (mut loops, mut seen) = (CrashLoops::default(), SeenInstances::default());
        for s in store.all() {
            if s.kind != Kind::Kill {
                loops.known(s.loop_key());
                if let Some(restart) = s.restart {
                    seen.insert(&s.uid, &s.container, restart);
                }
            }
            // What an earlier run kept and did not judge, or nobody had settled.
            if s.state == State::Kept || (s.state == State::Judged && s.kind == Kind::End) {
                let who = ContainerRef {
                    namespace: s.namespace.clone(),
                    pod: s.pod.clone(),
                    uid: s.uid.clone(),
                    container: s.container.clone(),
                    container_id: s.container_id.clone(),
                    restart: s.restart,
                };
                let oom = s.kernel_record.is_some() || s.kind == Kind::Kill;
                let judged = s.class.clone().filter(|_| s.state == State::Judged).map(|class| Judged {
                    class,
                    plane: s.plane.clone().unwrap_or_default(),
                    trigger: s.trigger.clone(),
                });
                let lived_on = s.kind == Kind::End && store.kills_of(&s.container_id).next().is_some();
                let _ =
                    tasks.send(Task { id: s.id.clone(), oom, lived_on, who, noticed: Moment::now(), judged });
            }
        }
        let shared = Shared::new(store);
        let health = parts.health;
        let author = Author { tool: config.tool.clone(), node: config.node.clone(), boot: boot.clone() };
        let keeper = Keeper {
            shared: Arc::clone(&shared),
            knowledge: Arc::clone(&knowledge),
            author,
            tape: tape.clone(),
            events: sender.clone(),
            judge: tasks,
            health: Arc::clone(&health),
        };
        let masking = Arc::clone(&knowledge);
        let court = JudgeWorker {
            shared: Arc::clone(&shared),
            judge: parts.judge,
            cluster: parts.cluster,
            mask: Box::new(move |value| Redactor::new(&masking).json(value)),
            events: sender,
            health: Arc::clone(&health),
            check: Moment::default(),
            no_answer: false,
            later: Vec::new(),
        };
        let threads = vec![
            keeper.start(frozen).map_err(RecorderError::Thread)?,
            court.start(judged, heard).map_err(RecorderError::Thread)?,
        ];
        let now = Moment::now();
        let mut recorder = Self {
            instances: Instances::new(&config.observe.pod_logs),
            config,
            boot,
            observer,
            wake: Waker::new(),
            counts: Counts { no_kernel: kernel.is_none(), ..Counts::default() },
            kernel,
            history,
            records: RecentOomKills::default(),
            saved: now,
            tape,
            notes: Notes::default(),
            stirred: now,
            looked_at_logs: Moment::default(),
            late: Vec::new(),
            ended_nameless: HashMap::new(),
            loops,
            seen,
            nameless: Vec::new(),
            kills: HashMap::new(),
            kill_told: HashMap::new(),
            sweep_due: None,
            swept: now,
            walks: 0,
            frozen: 0,
            began: now,
            health,
            kernel_tried: now,
            gpus_before: false,
            kubelet_before: false,
            shared,
            knowledge,
            jobs: Some(jobs),
            news,
            events,
            threads,
        };
        // The series first: what an earlier run left waits, the memory of a container that dies now does not.
        recorder.count_xids();
        recorder.take_round();
        recorder.read_history();
        recorder.take_up(recovered);
        Ok(recorder)
    }

    /// The machine after the last round.
    #[must_use]
    pub fn view(&self) -> &View {
        self.observer.view()
    }

    /// What happened since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How the ring is.
    #[must_use]
    pub fn ring(&self) -> RingCounts {
        self.tape.ring().counts()
    }

    /// The folder of incidents and its counts.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Rounds in which the GPU driver did not answer in time.
    #[must_use]
    pub fn gpu_late(&self) -> u64 {
        self.observer.sampler().gpu_late()
    }

    /// The kernel's name of this boot.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Records until it is told to stop, calling `after` behind each step.
    ///
    /// # Errors
    /// Waiting fails.
    pub fn run(&mut self, stop: &AtomicBool, mut after: impl FnMut(&Self)) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.step()?;
            after(self);
        }
        Ok(())
    }

    /// Waits for the next thing and does it.
    ///
    /// # Errors
    /// Waiting fails.
    pub fn step(&mut self) -> io::Result<()> {
        let now = Moment::now();
        let next = self.sweep_due.map_or(self.observer.due(), |s| s.min(self.observer.due()));
        let woken = self.wake.wait(self.kernel.as_ref().map(Kernel::file), next.since(now))?;
        let mut urgent = woken.groups;
        if woken.groups {
            self.stirred = now;
        }
        if woken.kernel {
            urgent |= self.listen();
        }
        let now = Moment::now();
        if urgent && self.sweep_due.is_none() {
            self.sweep_due = Some(self.swept.plus(SWEEP).max(now));
        }
        if now >= self.observer.due() {
            self.take_round();
        } else if self.sweep_due.is_some_and(|s| now >= s) {
            self.sweep();
        }
        Ok(())
    }

    /// Ends the threads behind what they have begun.
    pub fn finish(mut self) {
        self.jobs = None;
        if let Some(k) = &self.kernel {
            let _ = k.save(&self.config.state.join("kmsg.json"));
        }
        let _ = self.tape.ring().sync();
        for t in self.threads.drain(..) {
            let _ = t.join();
        }
    }

    fn take_round(&mut self) {
        let began = Moment::now();
        self.listen();
        let gone = self.observer.round();
        self.after_look(gone);
        self.look_at_logs_in_turn();
        self.settle_late();
        self.hear();
        self.tend();
        self.counts.rounds += 1;
        self.counts.round_ns = u64::try_from(Moment::now().since(began).as_nanos()).unwrap_or(u64::MAX);
        if self.history.is_some() && Moment::now().since(self.began) > OLD_LOG {
            self.history = None;
        }
    }

    fn sweep(&mut self) {
        // What it was killed by is said before its group goes.
        self.listen();
        let gone = self.observer.sweep();
        self.after_look(gone);
    }

    /// What a round and a sweep have in common: the ring first, as a freeze reads from it.
    fn after_look(&mut self, gone: Vec<ContainerView>) {
        (self.sweep_due, self.swept) = (None, Moment::now());
        let knowledge = &self.knowledge;
        let mask = |words: Vec<String>| mask_words(knowledge, words);
        let notes = self.notes.of(self.observer.view(), &mask);
        self.tape.ring().append(self.observer.records(), &notes);
        for n in self.observer.noticed() {
            match n {
                SampleEvent::OomKills { slot, kills } => {
                    self.counts.oom_kills += kills;
                    let entry = self.kills.entry(*slot).or_insert((0, Moment::now()));
                    entry.0 += kills;
                }
                SampleEvent::Appeared { .. } | SampleEvent::Vanished { .. } => self.stirred = self.swept,
                _ => {}
            }
        }
        // A pod's directory comes before that of its container.
        let watch = self.observer.sampler().watch();
        if watch.walks() != self.walks {
            self.walks = watch.walks();
            if self.wake.watch(watch.dirs()) {
                self.sweep_due = Some(self.swept.plus(SWEEP));
            }
        }
        // The folder of a pod that lived for less than a round is seen now or never; that it goes says that the end was meant.
        if !gone.is_empty() {
            self.look_at_logs();
        }
        for c in gone {
            self.gone(c);
        }
    }

    /// Takes in what the kernel says. `true` where it killed.
    fn listen(&mut self) -> bool {
        let Some(kernel) = &mut self.kernel else { return false };
        let mut said = Vec::new();
        if let Err(e) = kernel.turn(Duration::ZERO, &mut said) {
            self.lose_kernel(&e.to_string());
            return false;
        }
        let known = Listed(self.observer.view());
        if said.is_empty() && kernel.growing().is_none() {
            self.records.settled();
        }
        self.records.grows(kernel.growing(), &known);
        let (mut killed, mut xids) = (false, false);
        for s in said {
            match s {
                KernelMessage::Oom(r) => {
                    self.records.add(&r, &known);
                    killed = true;
                }
                KernelMessage::Xid { .. } => {
                    self.counts.xids += 1;
                    xids = true;
                }
                KernelMessage::Driver { .. } => {}
                KernelMessage::Lost(n) => self.counts.kernel_lost += n,
            }
        }
        if xids {
            self.count_xids();
        }
        killed
    }

    /// The kernel's counts of this boot, those of earlier runs among them.
    pub(super) fn count_xids(&mut self) {
        let Some(kernel) = &self.kernel else { return };
        let mut all: HashMap<String, XidTally> = HashMap::new();
        let mut last: HashMap<&str, u64> = HashMap::new();
        let state = kernel.state();
        for (key, count) in state.fold.kinds() {
            let tally = all.entry(key.gpu.clone()).or_default();
            *tally.by_code.entry(key.code).or_default() += count.count;
            let newest = last.entry(&key.gpu).or_default();
            if count.last_us >= *newest {
                (*newest, tally.last) = (count.last_us, Some(key.code));
            }
        }
        self.observer.set_xids(all);
    }

    /// Records of the OOM killer that an earlier run has taken in: a container that died while no agent ran needs them.
    fn read_history(&mut self) {
        let Some(history) = &mut self.history else { return };
        let mut said = Vec::new();
        while history.turn(Duration::ZERO, &mut said).is_ok_and(|n| n > 0) {}
        for s in said {
            if let KernelMessage::Oom(r) = s {
                self.records.add(&r, &Listed(&View::default()));
            }
        }
    }

    fn hear(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            match event {
                KeeperEvent::Done { path } => {
                    self.frozen = self.frozen.saturating_sub(1);
                    self.mark_gone(path);
                }
                KeeperEvent::NotADeath(key) => self.loops.forget(&key),
            }
        }
    }
}

/// Processes by the last lists of all containers.
struct Listed<'v>(&'v View);

impl Listed<'_> {
    fn container(&self, pid: u32) -> Option<&ContainerView> {
        let has = |c: &&ContainerView| c.processes.processes.iter().any(|p| p.pid == pid);
        self.0.containers.values().find(has)
    }
}

impl PidsKnown for Listed<'_> {
    fn owner(&self, pid: u32) -> Option<String> {
        self.container(pid)?.group.identity.container_id.clone()
    }

    fn came_by_exec(&self, pid: u32) -> Option<bool> {
        from_exec(&self.container(pid)?.processes.processes, pid)
    }
}

/// One to follow and count, one to look back with.
fn kernels(config: &Config, boot: &str) -> (Option<Kernel>, Option<Kernel>) {
    let open = |state| open_kernel(config, state).ok();
    let state = KernelState::load(&config.state.join("kmsg.json"), boot);
    let fresh = KernelState { boot: boot.to_owned(), ..KernelState::default() };
    // A first run reads from the oldest record on anyway.
    let history = state.next.is_some().then(|| open(fresh)).flatten();
    (open(state), history)
}

pub(super) fn open_kernel(config: &Config, state: KernelState) -> io::Result<Kernel> {
    Source::device(&config.kmsg).map(|s| Kernel::new(s, state))
}

/// Words of a command without its secrets.
fn mask_words(knowledge: &Knowledge, words: Vec<String>) -> Vec<String> {
    if words.is_empty() {
        return words;
    }
    let mut value = json!({ "command": words });
    Redactor::new(knowledge).json(&mut value);
    let masked = value.get("command").and_then(Value::as_array).into_iter().flatten();
    masked.filter_map(|w| w.as_str().map(ToOwned::to_owned)).collect()
}
