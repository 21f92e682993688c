//! What `free`, `top` and the like show of the machine.

use super::Weighing;
use crate::evidence::host_model::HostMemory;
use crate::facts::Place;
use crate::units::Bytes;
use crate::verdict::case::Case;
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
    let when = "a snapshot from a different time";
    if let Some((available, total)) = m.available.zip(m.total.filter(|t| t.0 > 0)) {
        let share = available.share_of(total);
        let text = format!(
            "{} shows {available} of {total} available on the machine ({:.1} %): {when}",
            m.tool,
            share * 100.0
        );
        match decided.class {
            Class::HostNodeOom if share < SHORT => decided.supports.push(Cited::at(text, &place)),
            Class::HostNodeOom => decided
                .against
                .push(Cited::at(format!("{text}, after the killed process released its memory"), &place)),
            _ => {}
        }
    }
    if let Some(percent) = m.used_percent.filter(|p| *p >= 90 && decided.class == Class::HostNodeOom) {
        let used = m.used.unwrap_or(Bytes(0));
        let name = m.node.as_deref().unwrap_or("the node");
        let text = format!("{} shows {name} at {percent} % ({used}): {when}", m.tool);
        decided.supports.push(Cited::at(text, &place));
    }
}
