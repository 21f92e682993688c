//! Who holds the card, where others do and the message names no pid.

use super::Weighing;
use crate::verdict::case::Case;
use crate::verdict::gpus::{TOLD, holder, on_card, own_card};
use crate::verdict::{Class, Decided, Trigger};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "card_holders",
    adds: "the processes listed on the pod's GPU, if other processes use it and the message names none",
    because: "the output is from a different time, but names the processes to check",
    source: "nvidia-smi and similar tools; PyTorch's allocator message",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let oom = decided.trigger.as_ref().and_then(Trigger::vram);
    let unnamed = oom.is_none_or(|o| o.processes.is_empty());
    if decided.class != Class::GpuCapacityConflict || !unnamed {
        return;
    }
    let card = own_card(case.bundle).map(|(_, g)| on_card(case.bundle, g)).unwrap_or_default();
    for (s, p) in card.into_iter().filter(|(_, p)| p.used.is_some()).take(TOLD) {
        let told = holder(s, p, false);
        if !decided.supports.iter().any(|c| c.place == told.place) {
            decided.supports.push(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, log, weighs};

    /// The message says how much others hold, and not who they are.
    fn oom(own: &str) -> File {
        log(&format!(
            "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has {own} GiB memory in use. Of the allocated memory {own} GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n"
        ))
    }

    fn listed() -> [File; 2] {
        [
            file(
                "nvidia-smi.csv",
                "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, 80321 MiB, 1238 MiB\n",
            ),
            file(
                "apps.csv",
                "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-5fd4f087-86f3-7a43-b711-4771313afc50, 88101, /opt/train/bin/trainer, 48083 MiB\n",
            ),
        ]
    }

    #[test]
    fn who_holds_the_card_is_named() {
        let [card, apps] = listed();
        weighs(&RULE, &[oom("30.00"), card, apps]);
    }

    #[test]
    fn a_process_that_filled_the_card_itself_has_no_neighbours_to_name() {
        let [card, apps] = listed();
        adds_nothing(&RULE, "vram_exhausted", &[oom("77.50"), card, apps]);
    }
}
