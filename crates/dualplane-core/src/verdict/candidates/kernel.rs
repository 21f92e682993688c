//! The OOM killer's record as a candidate.

use super::{Candidate, Source, end_phase};
use crate::facts::{Constraint, Facts, OomRecord};
use crate::verdict::proof::{self, Kernel};
use crate::verdict::rules::first;
use crate::verdict::{Cited, Class, Confidence, Subject};

/// Victims that are told; `memory.oom.group` kills every process of a cgroup.
const VICTIMS: usize = 6;

pub(super) fn oom(oom: &OomRecord, sure: Confidence, subject: &Subject, facts: &Facts) -> Candidate {
    let node = matches!(oom.constraint, Constraint::Global | Constraint::Numa) || oom.node_allocatable();
    let class = if node { Class::HostNodeOom } else { Class::HostOomKilled };
    let victim = oom.victims.first();
    let who = victim.map_or_else(|| "a process".to_owned(), |v| format!("{} (host pid {})", v.comm, v.pid));
    let more =
        if oom.victims.len() > 1 { format!(" and {} more", oom.victims.len() - 1) } else { String::new() };
    let what = match (oom.constraint, oom.limit.or(subject.memory_limit)) {
        (Constraint::Global, _) => {
            format!("the kernel's global OOM killer killed {who}{more}: the whole node was out of RAM")
        }
        (Constraint::Numa, _) => {
            format!("the kernel's OOM killer killed {who}{more}: its NUMA nodes were out of RAM")
        }
        (_, limit) if oom.node_allocatable() => format!(
            "the kernel OOM-killed {who}{more} at the node's limit for all pods{} (node allocatable): the \
            node was full, the container did not reach its own limit",
            limit.filter(|_| oom.limit.is_some()).map(|l| format!(", {l}")).unwrap_or_default()
        ),
        (_, Some(limit)) if oom.pod_level() => {
            format!(
                "the kernel OOM-killed {who}{more} at a memory limit of {limit} that covers the whole pod"
            )
        }
        (_, Some(limit)) => {
            format!("the kernel OOM-killed {who}{more} at the container's memory limit of {limit}")
        }
        (_, None) => format!("the kernel OOM-killed {who}{more} at its cgroup's memory limit"),
    };
    let mut supports = vec![Cited::at(Kernel::OomRecord(oom.constraint), &oom.place)];
    let killed = oom.victims.iter().take(VICTIMS);
    supports.extend(killed.map(|v| Cited::at(Kernel::Killed(v.clone()), &oom.place)));
    if let (Some(usage), Some(limit)) = (oom.usage, oom.limit) {
        supports.push(Cited::at(Kernel::CgroupUsage { usage, limit }, &oom.place));
    }
    if let Some((anon, shmem, file)) = oom.held() {
        supports.push(Cited::at(proof::Cgroup::breakdown(anon, shmem, file), &oom.place));
    }
    // The dead instance's own record lies near its end: `dmesg -T` prints local time, and the whole zones between are
    // taken off.
    let own =
        subject.death.as_ref().filter(|d| d.container_id.is_some() && d.container_id == oom.container_id());
    let stamp = match (own.and_then(|d| d.finished), oom.stamp) {
        (Some(end), Some(s)) => Some(s.without_zone(end)),
        (_, s) => s,
    };
    let clock = clocks(oom, subject, own.is_some());
    let mut c = Candidate::new(first::kernel_oom_kill::ID, class, Source::Kernel, what, "kernel.oom_killer")
        .at(&oom.place, &oom.text, stamp);
    c.confidence = if oom.constraint == Constraint::Unsaid { Confidence::Medium } else { sure };
    c.phase = end_phase(facts);
    c.supports = supports;
    c.against.extend(clock);
    c
}

/// The kernel log and the API do not tell the same time: said, because every comparison of times depends on it.
fn clocks(oom: &OomRecord, subject: &Subject, same_instance: bool) -> Option<Cited> {
    const AGREE_MS: i64 = 2 * 60 * 1000;
    let end = subject.death.as_ref()?.finished?;
    let stamp = oom.stamp?;
    let gap = stamp.ms_until(end).filter(|ms| ms.abs() > AGREE_MS)?;
    let proof = match stamp.zone_until(end) {
        Some(_) => Kernel::OtherZone { gap_ms: gap },
        None if same_instance => Kernel::WrongClock { gap_ms: gap },
        None => return None,
    };
    Some(Cited::at(proof, &oom.place))
}
