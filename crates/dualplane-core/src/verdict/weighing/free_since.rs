//! Free VRAM in a printout proves nothing about the failure.

use super::Weighing;
use crate::evidence::gpu_model::Gpu;
use crate::verdict::case::Case;
use crate::verdict::gpus::{cards, place};
use crate::verdict::proof;
use crate::verdict::{Cited, Decided, Plane, Trigger};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "free_since",
    adds: "a note that free VRAM in tool output is from a different time",
    because: "the dead process has released its memory since",
    source: "nvidia-smi and similar tools; PyTorch's allocator message",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    if decided.class.plane() != Plane::Gpu {
        return;
    }
    let oom = decided.trigger.as_ref().and_then(Trigger::vram);
    let free = |g: &Gpu| g.free.or_else(|| Some(g.total?.saturating_sub(g.used?)));
    let loose = cards(case.bundle)
        .into_iter()
        .find(|(_, g)| free(g).zip(oom.as_ref().and_then(|o| o.requested)).is_some_and(|(f, r)| f >= r));
    if let Some((s, g)) = loose {
        let free = free(g).unwrap_or_default();
        let proof = proof::Gpu::FreeLater { tool: s.tool, free, total: g.total };
        decided.against.push(Cited::at(proof, &place(&s.file, g.line)));
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, log, weighs};

    const OOM: &str = "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n";

    fn card(used: u64) -> File {
        let text = format!(
            "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, {used} MiB, {} MiB\n",
            81_559 - used
        );
        file("nvidia-smi.csv", &text)
    }

    #[test]
    fn an_empty_card_afterwards_is_explained() {
        weighs(&RULE, &[log(OOM), card(4)]);
    }

    #[test]
    fn a_full_card_needs_no_word() {
        adds_nothing(&RULE, "vram_exhausted", &[log(OOM), card(80_321)]);
    }
}
