//! The engine's own check names another cause on the GPU.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "engine_refusal";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::GpuCapacityConflict, Class::Fragmentation, Class::MigSliceTooSmall],
    "the engine itself reports other processes on the GPU, fragmented memory, or an unusable MIG instance",
    "free VRAM in tool output from a different time",
    "each signature's own source: dualplane explain SIGNATURE",
    |case| super::judge(case, ID, "no engine message names another process, fragmentation or a MIG instance"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{file, holds, log, near_miss};

    #[test]
    fn the_engine_s_own_check_decides() {
        holds(
            &RULE,
            &[log(
                "ValueError: Free memory on device (38.22/79.19 GiB) on startup is less than desired GPU memory utilization (0.9, 71.27 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n",
            )],
        );
    }

    #[test]
    fn a_printout_does_not() {
        near_miss(
            &RULE,
            "under_pressure",
            &[file(
                "nvidia-smi.csv",
                "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA H100 80GB HBM3, GPU-5fd4f087-86f3-7a43-b711-4771313afc50, 00000000:4A:00.0, 81559 MiB, 80321 MiB, 1238 MiB\n",
            )],
        );
    }
}
