//! What files and tools say of host RAM at one moment: a cgroup's counters, a machine's memory, `kubectl top`.

use dualplane_base::Place;

use crate::units::Bytes;

/// The memory files of one cgroup, version 1 or 2.
#[derive(Debug, Clone, Default)]
pub struct Cgroup {
    /// The first of its files that was read (a paste: the text).
    pub file: String,
    /// The cgroup's directory as printed; empty where nothing tells it.
    pub path: String,
    /// Part of a file's name behind the kernel's own (`memory.stat.last`): samples of different moments stay apart.
    pub suffix: String,
    /// `memory.current`, `memory.usage_in_bytes`.
    pub current: Option<Reading>,
    /// `memory.max`, `memory.limit_in_bytes`; no limit is `None`, see `unlimited`.
    pub limit: Option<Reading>,
    /// The limit was printed, and there is none.
    pub unlimited: bool,
    /// `memory.peak`, `memory.max_usage_in_bytes`.
    pub peak: Option<Reading>,
    /// `oom` of `memory.events`: an allocation failed at this cgroup's own limit or at one below it.
    pub oom: Option<Counter>,
    /// `oom_kill` of `memory.events` and `memory.oom_control`: processes of this cgroup killed by any OOM killer.
    pub oom_kill: Option<Counter>,
    /// `max` of `memory.events`, or `memory.failcnt`: how often the limit was touched; reclaim may have helped.
    pub at_limit: Option<Counter>,
    /// `under_oom` of `memory.oom_control`.
    pub under_oom: bool,
    /// Anonymous memory (`anon`, `total_rss`).
    pub anon: Option<Reading>,
    /// Page cache with tmpfs in it (`file`, `total_cache`).
    pub file_pages: Option<Reading>,
    /// Locked pages (`unevictable`, `total_unevictable`).
    pub unevictable: Option<Reading>,
    /// tmpfs, shared and pinned memory (`shmem`, `total_shmem`).
    pub shmem: Option<Reading>,
    /// Share of the last minute in which all its tasks waited for memory, percent (`full avg60` of `memory.pressure`).
    pub stalled: Option<f64>,
}

/// An amount and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Amount.
    pub bytes: Bytes,
    /// Where.
    pub place: Place,
}

/// A counter and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Count since the cgroup was made.
    pub count: u64,
    /// Where.
    pub place: Place,
}

/// `free`, `/proc/meminfo`, a row of `kubectl top node`: the memory of a machine.
#[derive(Debug, Clone, Default)]
pub struct HostMemory {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// `free`, `/proc/meminfo`, `kubectl top node`.
    pub tool: &'static str,
    /// Node, where it is told.
    pub node: Option<String>,
    /// All of it.
    pub total: Option<Bytes>,
    /// Memory available to a new process without swapping.
    pub available: Option<Bytes>,
    /// In use (`kubectl top node`: the working set).
    pub used: Option<Bytes>,
    /// In use, percent of what can be allocated.
    pub used_percent: Option<u64>,
}

/// A row of `kubectl top pod`, or what the kubelet and metrics-server say of the same.
#[derive(Debug, Clone, Default)]
pub struct TopRow {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// `kubectl top`, `metrics-server`, `the kubelet's summary`.
    pub tool: &'static str,
    /// Namespace, where printed.
    pub namespace: Option<String>,
    /// Pod.
    pub pod: String,
    /// Container, with `--containers`.
    pub container: Option<String>,
    /// Working set.
    pub memory: Bytes,
}

impl Cgroup {
    /// Pod UID in its path.
    #[must_use]
    pub fn pod_uid(&self) -> Option<String> {
        dualplane_base::cgroup_path::pod_uid(&self.path)
    }

    /// Container id in its path.
    #[must_use]
    pub fn container_id(&self) -> Option<String> {
        dualplane_base::cgroup_path::container_id(&self.path)
    }
}
