//! Names of the processes whose pids the message tells.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::gpus::{TOLD, holds, place};
use crate::verdict::{Cited, Decided, Plane, Trigger};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "named_processes",
    adds: "what tool output shows about the PIDs named in the message",
    because: "the message names them at the time of the failure",
    source: "nvidia-smi and similar tools; PyTorch's allocator message",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Gpu {
        return;
    }
    let oom = decided.trigger.as_ref().and_then(Trigger::vram);
    let named: Vec<u64> = oom.iter().flat_map(|o| &o.processes).map(|(pid, _)| *pid).collect();
    let all = case.bundle.gpus.iter().flat_map(|s| s.processes.iter().map(move |p| (s, p)));
    for (s, p) in all.filter(|(_, p)| named.contains(&p.pid)).take(TOLD) {
        let text = format!("{}: the PID named in the message", holds(s, p));
        decided.supports.push(Cited::at(text, &place(&s.file, p.line)));
    }
}
