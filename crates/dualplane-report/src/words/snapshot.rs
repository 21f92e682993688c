//! Words for memory of one moment.

use dualplane_base::text::counted;
use dualplane_core::verdict::proof::Snapshot;

/// Nothing is known of the time but that it is another one.
const WHEN: &str = "a snapshot from a different time";

pub(super) fn sentence(proof: &Snapshot) -> String {
    match proof {
        Snapshot::Gpus { tool, gpus, instances, processes } => format!(
            "{tool}: {}, {}, {}",
            counted(*gpus, "GPU"),
            counted(*instances, "MIG instance"),
            counted(*processes, "process")
        ),
        Snapshot::Samples(n) => {
            format!("{}, without a counter or gauge that shows a failure", counted(*n, "metric sample"))
        }
        Snapshot::Cgroup { kills: Some(n) } => {
            format!("cgroup memory files with {}", counted(*n, "OOM kill"))
        }
        Snapshot::Cgroup { kills: None } => "cgroup memory files without OOM kill counters".to_owned(),
        Snapshot::Machine(tool) => format!("{tool}: memory of a machine"),
        Snapshot::WorkingSet { tool, pod, used } => format!("{tool}: {pod} has a working set of {used}"),
        Snapshot::NearLimit { tool, used, limit } => format!(
            "{tool} showed a working set of {used} ({:.0} % of the limit {}), at an unknown time",
            used.share_of(*limit) * 100.0,
            limit.k8s()
        ),
        Snapshot::Torch { device, failed } => {
            format!("memory_summary of device {device} with {}", counted(*failed, "failed allocation"))
        }
        Snapshot::Available { tool, available, total, released } => {
            let share = available.share_of(*total) * 100.0;
            let after = if *released { ", after the killed process released its memory" } else { "" };
            format!(
                "{tool} shows {available} of {total} available on the machine ({share:.1} %): {WHEN}{after}"
            )
        }
        Snapshot::NodeUse { tool, node, percent, used } => {
            let node = node.as_deref().unwrap_or("the node");
            format!("{tool} shows {node} at {percent} % ({used}): {WHEN}")
        }
    }
}
