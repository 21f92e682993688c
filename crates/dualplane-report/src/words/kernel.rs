//! Words for what the kernel log proves.

use dualplane_base::text::name;
use dualplane_base::units::Bytes;
use dualplane_core::facts::{Constraint, Victim};
use dualplane_core::verdict::proof::Kernel;

pub(super) fn sentence(proof: &Kernel) -> String {
    match proof {
        Kernel::OomRecord(scope) => format!("the OOM killer's record starts here ({})", scope_of(*scope)),
        Kernel::Killed(victim) => killed(victim),
        Kernel::Nameless(victim) => format!("{}; no line names its cgroup", killed(victim)),
        Kernel::CgroupUsage { usage, limit } => format!("cgroup usage {usage} of limit {limit}"),
        Kernel::PinnedMemory { shmem, anon } => {
            format!("shmem-rss {shmem}, anon-rss {anon}; CUDA's pinned host memory counts as shmem")
        }
        Kernel::Scope { cgroup: true } => "this record's scope is a cgroup's limit".to_owned(),
        Kernel::Scope { cgroup: false } => "this record's scope is the whole node".to_owned(),
        Kernel::OtherZone { gap_ms } => format!(
            "the kernel log's clock is {} the container's end in the API; assumed to be a time zone difference",
            apart(*gap_ms)
        ),
        Kernel::WrongClock { gap_ms } => format!(
            "the record is {} the container's end in the API, but its container ID matches: one of the clocks \
            is wrong, or the container kept running after the kill",
            apart(*gap_ms)
        ),
        Kernel::OtherHost { host, node } => {
            format!("the line is from host {}, but the pod ran on node {}", name(host), name(node))
        }
        Kernel::OomOnHost(host) => format!("an OOM kill on host {}", name(host)),
        Kernel::NoOomRecord => "the kernel log contains no OOM-killer record of this pod".to_owned(),
        Kernel::NoLog => "the evidence contains no kernel log, which would settle it".to_owned(),
    }
}

/// In the kernel's own words, with what they mean.
fn scope_of(constraint: Constraint) -> &'static str {
    match constraint {
        Constraint::Memcg => "constraint=CONSTRAINT_MEMCG: a cgroup limit",
        Constraint::Global => "constraint=CONSTRAINT_NONE: the whole node",
        Constraint::Numa => "constraint=CPUSET/MEMORY_POLICY: some NUMA nodes",
        Constraint::Unsaid => "the lines that show its scope are missing",
    }
}

fn killed(v: &Victim) -> String {
    let part = |name: &str, bytes: Option<Bytes>| bytes.map(|b| format!("{name} {b}"));
    let parts = [part("anon", v.anon), part("shmem", v.shmem), part("file", v.file)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("killed {} (host pid {}): {}", v.comm, v.pid, parts.join(", "))
}

/// `3 min ahead of`; a record that is later than the end has a clock that is behind.
fn apart(gap_ms: i64) -> String {
    let minutes = (gap_ms.abs() + 30_000) / 60_000;
    let way = if gap_ms < 0 { "ahead of" } else { "behind" };
    format!("{minutes} min {way}")
}
