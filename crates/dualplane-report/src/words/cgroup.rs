//! Words for the memory files of a cgroup.

use dualplane_base::text::counted;
use dualplane_core::verdict::proof::{Cgroup, NoKill};

pub(super) fn sentence(proof: &Cgroup) -> String {
    match proof {
        Cgroup::OomKill(n) => format!("oom_kill {n}"),
        Cgroup::Oom(n) => format!("oom {n}"),
        Cgroup::PodFailures(n) => format!("failures counted in the pod's cgroup: {n}"),
        Cgroup::UnknownContainer => "it is unknown which container's cgroup these files belong to".to_owned(),
        Cgroup::PodLimitAbove => "a pod-level limit applies in addition to the container's".to_owned(),
        Cgroup::NoTime => "a counter has no timestamp and names no process; the kernel log does".to_owned(),
        Cgroup::Peak { peak, limit } => {
            let share = peak.share_of(*limit) * 100.0;
            format!("the cgroup's peak is {peak} of its limit {limit} ({share:.1} %)")
        }
        Cgroup::Kills(n) => format!("the cgroup counts {}", counted(*n, "OOM kill")),
        Cgroup::NoKill(NoKill::Dead) => "the cgroup of the dead instance counts no OOM kill".to_owned(),
        Cgroup::NoKill(NoKill::Pod) => {
            "the pod's cgroup counts no OOM kill in any of its containers".to_owned()
        }
        Cgroup::NoKill(NoKill::Running) => {
            "the cgroup of the running instance counts no OOM kill: its counters started after the death, so \
            this is not evidence"
                .to_owned()
        }
        Cgroup::NoKill(NoKill::Unknown) => {
            "a cgroup counts no OOM kill, but a restarted container has new counters, and the instance is \
            unknown"
                .to_owned()
        }
        Cgroup::Breakdown { anon, shmem, cache } => format!(
            "including anonymous memory {anon}, tmpfs, shared and pinned memory {shmem}, page cache {cache} \
            (only this is reclaimable)"
        ),
    }
}
