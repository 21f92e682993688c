//! What the kernel counts for one group, in one form for both generations. What it does not say is `None`.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst`.

use dualplane_base::units::Bytes;

use crate::number::{hundredths, leading, pairs};

/// Anything near the largest multiple of a page is cgroup v1's way of saying that there is no limit.
const NO_LIMIT: u64 = 1 << 60;

/// A limit that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// There is none.
    Unlimited,
    /// At so much the kernel reclaims, then kills.
    At(Bytes),
}

impl Limit {
    /// `max`, a number, or v1's number for none; `None` where it is neither.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.trim_ascii() == b"max" {
            return Some(Self::Unlimited);
        }
        leading(text).map(|n| if n >= NO_LIMIT { Self::Unlimited } else { Self::At(Bytes(n)) })
    }

    /// The amount, where there is a limit.
    #[must_use]
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Unlimited => None,
            Self::At(b) => Some(b),
        }
    }

    /// The tighter of two.
    #[must_use]
    pub fn tighter(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(a), Self::At(b)) => Self::At(a.min(b)),
            (Self::Unlimited, l) | (l, Self::Unlimited) => l,
        }
    }
}

/// Time in which tasks waited for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Microseconds since the group was made in which some task waited.
    pub some_us: Option<u64>,
    /// … in which all waited.
    pub full_us: Option<u64>,
    /// Share of the last 10 s in which all waited, hundredths of a percent.
    pub full_avg10: Option<u64>,
}

impl Pressure {
    /// Reads `memory.pressure` and `/proc/pressure/memory`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let mut p = Self::default();
        for line in text.split(|b| *b == b'\n') {
            let total = behind(line, b"total=").and_then(leading);
            if line.starts_with(b"some ") {
                p.some_us = total;
            } else if line.starts_with(b"full ") {
                p.full_us = total;
                p.full_avg10 = behind(line, b"avg10=").and_then(hundredths);
            }
        }
        p
    }
}

fn behind<'a>(line: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let at = line.windows(word.len()).position(|w| w == word)?;
    line.get(at + word.len()..)
}

/// The memory of one group at one moment.
///
/// Pinned host memory (`cudaHostAlloc`) is in [`Self::shmem`], as tmpfs is: neither can be reclaimed without swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// In use, page cache included.
    pub current: Option<Bytes>,
    /// The most that ever was (Linux 5.19 and later on v2).
    pub peak: Option<Bytes>,
    /// The tightest limit of the group and those above it.
    pub limit: Option<Limit>,
    /// Swap in use.
    pub swap: Option<Bytes>,
    /// Anonymous.
    pub anon: Option<Bytes>,
    /// Page cache, including tmpfs.
    pub file: Option<Bytes>,
    /// tmpfs, shared and pinned memory.
    pub shmem: Option<Bytes>,
    /// Kernel memory (v1: `memory.kmem` is not read; `None`).
    pub kernel: Option<Bytes>,
    /// Inactive page cache, which the kernel reclaims first.
    pub inactive_file: Option<Bytes>,
    /// Page cache that was used again.
    pub active_file: Option<Bytes>,
    /// Locked memory, never reclaimed.
    pub unevictable: Option<Bytes>,
    /// Page faults that waited for a disk: the sign of thrashing below the limit.
    pub major_faults: Option<u64>,
    /// Times the limit was reached; reclaim may have freed memory.
    pub at_limit: Option<u64>,
    /// How often an allocation failed at the limit (v2).
    pub oom: Option<u64>,
    /// Kills by an OOM killer in this group. Where all of a group are killed together, the process that was chosen first
    /// counts twice (Linux 6.1, `mm/oom_kill.c`).
    pub oom_kill: Option<u64>,
    /// Times that the whole group was killed (v2, Linux 5.17).
    pub oom_group_kill: Option<u64>,
    /// Waiting for memory.
    pub pressure: Pressure,
}

impl Memory {
    /// What the kubelet calls the working set: usage without the page cache that is reclaimed first.
    #[must_use]
    pub fn working_set(&self) -> Option<Bytes> {
        Some(self.current?.saturating_sub(self.inactive_file?))
    }

    /// Takes `memory.stat` of v2 in.
    pub(super) fn stat_v2(&mut self, text: &[u8]) {
        for (key, n) in pairs(text) {
            let field = match key {
                b"anon" => &mut self.anon,
                b"file" => &mut self.file,
                b"kernel" => &mut self.kernel,
                b"shmem" => &mut self.shmem,
                b"inactive_file" => &mut self.inactive_file,
                b"active_file" => &mut self.active_file,
                b"unevictable" => &mut self.unevictable,
                b"pgmajfault" => {
                    self.major_faults = Some(n);
                    continue;
                }
                _ => continue,
            };
            *field = Some(Bytes(n));
        }
    }

    /// Takes `memory.stat` of v1 in: the `total_` twins count groups below, as v2 does.
    pub(super) fn stat_v1(&mut self, text: &[u8]) {
        for (key, n) in pairs(text) {
            let field = match key {
                b"total_rss" => &mut self.anon,
                b"total_cache" => &mut self.file,
                b"total_shmem" => &mut self.shmem,
                b"total_swap" => &mut self.swap,
                b"total_inactive_file" => &mut self.inactive_file,
                b"total_active_file" => &mut self.active_file,
                b"total_unevictable" => &mut self.unevictable,
                b"total_pgmajfault" => {
                    self.major_faults = Some(n);
                    continue;
                }
                // Already the tightest of the group and all above it.
                b"hierarchical_memory_limit" => {
                    self.limit = Some(if n >= NO_LIMIT { Limit::Unlimited } else { Limit::At(Bytes(n)) });
                    continue;
                }
                _ => continue,
            };
            *field = Some(Bytes(n));
        }
    }

    /// Takes `memory.events` (v2) or `memory.oom_control` (v1) in.
    pub(super) fn events(&mut self, text: &[u8]) {
        for (key, n) in pairs(text) {
            match key {
                b"max" => self.at_limit = Some(n),
                b"oom" => self.oom = Some(n),
                b"oom_kill" => self.oom_kill = Some(n),
                b"oom_group_kill" => self.oom_group_kill = Some(n),
                _ => {}
            }
        }
    }
}
