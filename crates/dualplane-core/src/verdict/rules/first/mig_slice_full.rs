//! VRAM ran out on a MIG instance that this process fills.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "mig_slice_full";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::MigSliceTooSmall],
    "a VRAM error on a MIG instance of which this process uses 75 %, whose size the request exceeds, or \
    that leaves no room for a KV block",
    "a VRAM error on a MIG instance that other processes fill",
    "NVIDIA MIG user guide: profiles; PyTorch's allocator message",
    |case| super::judge(case, ID, "there is no VRAM error on a MIG instance that this process fills"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, log, near_miss, pod_with};

    fn slice() -> File {
        pod_with(1, "Error", |p| {
            p["spec"]["containers"][0]["resources"]["limits"] =
                serde_json::json!({"nvidia.com/mig-1g.10gb": "1", "memory": "64Gi"});
        })
    }
    const FULL: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 9.50 GiB of which 0.20 GiB is free. Including non-PyTorch memory, this process has 9.10 GiB memory in use.\n";
    const TAKEN: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 9.50 GiB of which 0.20 GiB is free. Including non-PyTorch memory, this process has 2.10 GiB memory in use.\n";

    #[test]
    fn an_instance_that_the_process_fills_is_too_small() {
        holds(&RULE, &[slice(), log(FULL)]);
    }

    #[test]
    fn one_that_others_fill_is_taken() {
        near_miss(&RULE, "vram_neighbour", &[slice(), log(TAKEN)]);
    }
}
