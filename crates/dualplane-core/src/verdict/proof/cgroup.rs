//! Memory files of a cgroup.

use crate::units::Bytes;

/// What a cgroup's counters prove.
#[derive(Debug, Clone, PartialEq)]
pub enum Cgroup {
    /// Its `oom_kill`.
    OomKill(u64),
    /// Its `oom`: failures at this limit or below it.
    Oom(u64),
    /// Failures at the limit of the pod.
    PodFailures(u64),
    /// Nothing tells which container's it is.
    UnknownContainer,
    /// The limit of a whole pod stands above that of its container, and what it holds is not at hand.
    PodLimitAbove,
    /// A counter tells neither time nor process.
    NoTime,
    /// High-water mark against the limit.
    Peak {
        /// Peak.
        peak: Bytes,
        /// Limit.
        limit: Bytes,
    },
    /// It counts kills, beside another proof of the death.
    Kills(u64),
    /// It counts no kill.
    NoKill(NoKill),
    /// What fills it.
    Breakdown {
        /// Anonymous memory.
        anon: Bytes,
        /// Tmpfs, shared and pinned memory.
        shmem: Bytes,
        /// Page cache.
        cache: Bytes,
    },
}

impl Cgroup {
    /// What fills it, of its anonymous memory and its files: tmpfs, shared and pinned memory count among these.
    pub(in crate::verdict) fn breakdown(anon: Bytes, shmem: Bytes, file: Bytes) -> Self {
        Self::Breakdown { anon, shmem, cache: file.saturating_sub(shmem) }
    }

    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::OomKill(_) => "cgroup.oom_kill",
            Self::Oom(_) => "cgroup.oom",
            Self::PodFailures(_) => "cgroup.pod_failures",
            Self::UnknownContainer => "cgroup.unknown_container",
            Self::PodLimitAbove => "cgroup.pod_limit_above",
            Self::NoTime => "cgroup.no_time",
            Self::Peak { .. } => "cgroup.peak",
            Self::Kills(_) => "cgroup.kills",
            Self::NoKill(_) => "cgroup.no_kill",
            Self::Breakdown { .. } => "cgroup.breakdown",
        }
    }
}

/// Whose cgroup counts no OOM kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoKill {
    /// That of the instance that died.
    Dead,
    /// That of the whole pod.
    Pod,
    /// That of the instance that runs now: its counters began after the death.
    Running,
    /// Nothing tells.
    Unknown,
}
