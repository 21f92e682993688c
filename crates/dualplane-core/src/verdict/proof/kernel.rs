//! The kernel's OOM killer, and whose kernel it was.

use crate::facts::{Constraint, Victim};
use crate::units::Bytes;

/// What the kernel log proves.
#[derive(Debug, Clone, PartialEq)]
pub enum Kernel {
    /// A record of the OOM killer begins, with its scope.
    OomRecord(Constraint),
    /// A process that it killed.
    Killed(Victim),
    /// A process that it killed at the limit of a cgroup which no line names.
    Nameless(Victim),
    /// Use of the cgroup at the kill.
    CgroupUsage {
        /// Use.
        usage: Bytes,
        /// Limit.
        limit: Bytes,
    },
    /// Most of what was killed was pinned or shared memory.
    PinnedMemory {
        /// Shared memory; CUDA's pinned memory counts as such.
        shmem: Bytes,
        /// Heap.
        anon: Bytes,
    },
    /// Whether a cgroup's limit or the whole node was short, by the record.
    Scope {
        /// A cgroup's limit.
        cgroup: bool,
    },
    /// The kernel's clock is in another time zone than the API's.
    OtherZone {
        /// Milliseconds from the record to the end in the API.
        gap_ms: i64,
    },
    /// The times differ although it is one and the same container.
    WrongClock {
        /// Milliseconds from the record to the end in the API.
        gap_ms: i64,
    },
    /// The line is another node's.
    OtherHost {
        /// Host that the line names.
        host: String,
        /// Node of the pod.
        node: String,
    },
    /// An OOM kill on another host.
    OomOnHost(String),
    /// The kernel log holds no record of the OOM killer.
    NoOomRecord,
    /// There is no kernel log.
    NoLog,
}

impl Kernel {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::OomRecord(_) => "kernel.oom_record",
            Self::Killed(_) => "kernel.killed",
            Self::Nameless(_) => "kernel.nameless",
            Self::CgroupUsage { .. } => "kernel.cgroup_usage",
            Self::PinnedMemory { .. } => "kernel.pinned_memory",
            Self::Scope { .. } => "kernel.scope",
            Self::OtherZone { .. } => "kernel.other_zone",
            Self::WrongClock { .. } => "kernel.wrong_clock",
            Self::OtherHost { .. } => "kernel.other_host",
            Self::OomOnHost(_) => "kernel.oom_on_host",
            Self::NoOomRecord => "kernel.no_oom_record",
            Self::NoLog => "kernel.no_log",
        }
    }
}
