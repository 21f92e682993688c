//! Names of the processes whose pids the message tells.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::gpus::{TOLD, holder};
use crate::verdict::{Decided, Plane, Trigger};

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
        decided.supports.push(holder(s, p, true));
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, file, judged, log};

    fn files(pid: u64) -> [File; 3] {
        [
            log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Process 88101 has 48.00 GiB memory in use. Process 90210 has 30.00 GiB memory in use. Of the allocated memory 28.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
            ),
            file(
                "nvidia-smi.csv",
                "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, 80321 MiB, 1238 MiB\n",
            ),
            file(
                "apps.csv",
                &format!(
                    "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-5fd4f087-86f3-7a43-b711-4771313afc50, {pid}, /opt/train/bin/trainer, 48083 MiB\n"
                ),
            ),
        ]
    }

    #[test]
    fn the_message_s_pid_gets_its_name() {
        let v = judged(&files(88_101));
        assert!(v.weighed.contains(&RULE.id), "{:?}", v.weighed);
    }

    #[test]
    fn another_pid_does_not() {
        let v = judged(&files(77_000));
        assert!(!v.weighed.contains(&RULE.id), "{:?}", v.weighed);
    }
}
