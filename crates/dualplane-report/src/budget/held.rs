//! What the dead container held of host RAM, as far as the evidence tells.

use dualplane_base::order::Order as _;
use dualplane_base::units::Bytes;
use dualplane_core::evidence::Bundle;
use dualplane_core::evidence::host_model::{Cgroup, Reading};
use dualplane_core::facts::Facts;
use dualplane_core::verdict::{Course, Subject, cgroup_of_the_dead, course, memory_limit};

/// A process below this share of all is left out: helpers, shells, sandboxes.
const LEAST_SHARE: f64 = 0.02;

/// Host RAM at the end.
#[derive(Debug, Clone)]
pub struct Held {
    /// The limit that was hit.
    pub limit: Bytes,
    /// Anonymous memory, and of whom it is told.
    pub anon: Option<Bytes>,
    /// Shared memory: tmpfs, /dev/shm, pinned host memory.
    pub shmem: Option<Bytes>,
    /// The two are the whole cgroup's and not only those of the killed processes.
    pub whole: bool,
    /// Processes by name with what they held, the largest first.
    pub processes: Vec<(String, Bytes)>,
    /// How long the container ran.
    pub ran_ms: Option<i64>,
    /// How the memory went to its end.
    pub course: Option<Course>,
    /// Checkpoint files loaded, of how many.
    pub shards: Option<(u64, u64)>,
}

/// What is known of it; `None` without a limit.
#[must_use]
pub(super) fn held(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Option<Held> {
    let limit = memory_limit(facts, subject)?;
    let record = subject.kill_of(facts);
    let stat = |keys: &[&str]| {
        record.and_then(|r| r.stat.iter().find(|(k, _)| keys.contains(&k.as_str())).map(|(_, b)| *b))
    };
    let files = cgroup_of_the_dead(bundle, subject);
    let of_files = |r: fn(&Cgroup) -> &Option<Reading>| files.and_then(|c| r(c).as_ref()).map(|r| r.bytes);
    let of_cgroup = (
        stat(&["anon", "total_rss"]).or_else(|| of_files(|c| &c.anon)),
        stat(&["shmem", "total_shmem"]).or_else(|| of_files(|c| &c.shmem)),
    );
    let victims = record.map(|r| r.victims.as_slice()).unwrap_or_default();
    let sum = |of: fn(&dualplane_core::facts::Victim) -> Option<Bytes>| {
        victims.iter().filter_map(of).reduce(Bytes::saturating_add)
    };
    let of_victims = (sum(|v| v.anon), sum(|v| v.shmem));
    let whole = of_cgroup.0.is_some();
    let (anon, shmem) = if whole { of_cgroup } else { of_victims };
    let tasks = record.map(|r| r.tasks.as_slice()).unwrap_or_default();
    let mut processes: Vec<(String, Bytes)> = if tasks.is_empty() {
        victims
            .iter()
            .map(|v| (v.comm.clone(), v.anon.unwrap_or_default().saturating_add(v.shmem.unwrap_or_default())))
            .collect()
    } else {
        tasks.iter().map(|t| (t.comm.clone(), t.held)).collect()
    };
    processes.retain(|(_, b)| b.share_of(limit) >= LEAST_SHARE);
    processes.order_by_key(|(_, b)| std::cmp::Reverse(*b));
    let death = subject.death.as_ref();
    let ran_ms =
        death.and_then(|d| d.started.zip(d.finished)).and_then(|(a, b)| a.ms_until(b)).filter(|ms| *ms > 0);
    let shards = facts.hits.iter().rev().find_map(|h| {
        let (done, all) = (h.number("shards_done")?, h.number("shards")?);
        (all >= 1.0 && done <= all && done >= 0.0).then_some((done as u64, all as u64))
    });
    Some(Held {
        limit,
        anon,
        shmem,
        whole,
        processes,
        ran_ms,
        course: course(bundle, facts, subject),
        shards,
    })
}

impl Held {
    /// What the server held outside of shared memory: all of it where nothing tells.
    #[must_use]
    pub fn heap(&self) -> Bytes {
        self.anon.unwrap_or_else(|| self.limit.saturating_sub(self.shmem.unwrap_or_default()))
    }
}
