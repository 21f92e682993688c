//! What `free`, `top` and the like show of the machine.

use super::Weighing;
use crate::evidence::host_model::HostMemory;
use crate::facts::Place;
use crate::verdict::case::Case;
use crate::verdict::proof::Snapshot;
use crate::verdict::{Cited, Class, Decided, Plane};

/// A machine with less than this share available is short of memory: the kubelet evicts at 100 MiB, kernels reclaim before.
const SHORT: f64 = 0.05;
/// Machines that are told of.
const TOLD: usize = 4;

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "machine_memory",
    adds: "available memory of the machine, as evidence for or against the node as the cause",
    because: "a snapshot from a different time: what was killed has given its memory back",
    source: "free(1), /proc/meminfo, kubectl top node",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Host {
        return;
    }
    let node = case.subject.node.as_ref();
    let here = |m: &&HostMemory| m.node.as_ref().zip(node).is_none_or(|(a, b)| a == b);
    for m in case.bundle.machines.iter().filter(here).take(TOLD) {
        machine(decided, m);
    }
}

fn machine(decided: &mut Decided, m: &HostMemory) {
    let place = Place { file: m.file.clone(), line: Some(m.line) };
    if let Some((available, total)) = m.available.zip(m.total.filter(|t| t.0 > 0)) {
        let short = available.share_of(total) < SHORT;
        let proof = Snapshot::Available { tool: m.tool, available, total, released: !short };
        match decided.class {
            Class::HostNodeOom if short => decided.supports.push(Cited::at(proof, &place)),
            Class::HostNodeOom => decided.against.push(Cited::at(proof, &place)),
            _ => {}
        }
    }
    if let Some(percent) = m.used_percent.filter(|p| *p >= 90 && decided.class == Class::HostNodeOom) {
        let (node, used) = (m.node.clone(), m.used.unwrap_or_default());
        let proof = Snapshot::NodeUse { tool: m.tool, node, percent, used };
        decided.supports.push(Cited::at(proof, &place));
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, kernel, pod, weighs};

    fn meminfo() -> File {
        file(
            "meminfo",
            "MemTotal:       527951764 kB\nMemFree:         1200000 kB\nMemAvailable:    2100000 kB\nBuffers:           12000 kB\nCached:          1500000 kB\nSwapCached:            0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n",
        )
    }

    #[test]
    fn a_machine_without_memory_supports_the_node_as_the_cause() {
        let oomd = kernel(
            "Feb 15 17:10:20 node7 systemd-oomd[949]: Killed /system.slice/vllm.service due to memory pressure for /system.slice being 51.23% > 50.00% for > 20s with reclaim activity\n",
        );
        weighs(&RULE, &[oomd, meminfo()]);
    }

    #[test]
    fn it_says_nothing_of_a_container_s_own_limit() {
        adds_nothing(&RULE, "oom_killed_status", &[pod(137, "OOMKilled"), meminfo()]);
    }
}
