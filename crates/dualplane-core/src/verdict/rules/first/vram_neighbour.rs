//! By the numbers of the message, others hold what was needed.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_neighbour";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::GpuCapacityConflict],
    "total − free − this process is at least 15 % of the GPU and covers the request together with free \
    memory",
    "other processes use less than 15 %: contexts and display",
    "PyTorch c10/cuda/CUDACachingAllocator.cpp: the OutOfMemoryError's sizes",
    |case| super::judge(case, ID, "no VRAM error has sizes that show another process"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn what_others_hold_decides() {
        holds(
            &RULE,
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 30.00 GiB memory in use. Of the allocated memory 28.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
            )],
        );
    }

    #[test]
    fn contexts_of_others_do_not() {
        near_miss(
            &RULE,
            "vram_exhausted",
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
            )],
        );
    }
}
