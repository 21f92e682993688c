//! A machine whose GPU has no memory of its own, or one that the kernel uses, too.

use super::Weighing;
use crate::facts::Pools;
use crate::verdict::case::Case;
use crate::verdict::proof::Gpu;
use crate::verdict::{Cited, Class, Decided, Plane};

pub(in crate::verdict) const RULE: Weighing = Weighing {
    id: "shared_pool",
    adds: "that CPU and GPU share one pool, or that the kernel may use the card's",
    because: "host RAM and VRAM are then no two planes, and a remedy that moves load between them is none",
    source: "CUDA programming guide (integrated GPUs, GH200); ROCm documentation of MI300A; knowledge/gpus.toml",
    apply,
};

fn apply(case: &Case<'_>, decided: &mut Decided) {
    let Some(p) = case.facts.pools.as_ref() else { return };
    let card = p.card.clone();
    // The limit of a container is of its host side alone: what a GPU takes is not charged to a cgroup.
    let bears =
        matches!(decided.class.plane(), Plane::Gpu | Plane::Host) && decided.class != Class::HostOomKilled;
    let proof = match p.pools {
        Pools::One => Gpu::OnePool { card },
        Pools::Coherent => Gpu::CoherentPools { card },
    };
    decided.supports.extend(bears.then(|| Cited::at(proof, &p.place)));
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, adds_nothing, file, log, weighs};

    const OOM: &str = "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 119.70 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 118.50 GiB memory in use. Of the allocated memory 117.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n";

    fn card(name: &str) -> File {
        let text = format!(
            "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB]\n0, {name}, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 0000000F:01:00.0, 122571 MiB, 121000 MiB\n"
        );
        file("nvidia-smi.csv", &text)
    }

    #[test]
    fn one_pool_and_coherent_ones_are_told() {
        weighs(&RULE, &[log(OOM), card("NVIDIA GB10")]);
        weighs(&RULE, &[log(OOM), card("NVIDIA GH200 480GB")]);
    }

    #[test]
    fn a_card_with_memory_of_its_own_needs_no_word() {
        adds_nothing(&RULE, "vram_exhausted", &[log(OOM), card("NVIDIA H200")]);
    }
}
