//! Enough was reserved, not in one piece.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_fragmented";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::Fragmentation],
    "reserved but unallocated memory covers the request (or does together with free memory, if it is 10 % \
    of the GPU), and tensors fill less than 95 %",
    "allocator slack below 0.5 % of the GPU; tensors that fill 95 % of it",
    "PyTorch: \"reserved by PyTorch but unallocated\"",
    |case| super::judge(case, ID, "no VRAM error shows reserved memory that would have covered the request"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn idle_reserved_memory_decides() {
        holds(
            &RULE,
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 58.00 GiB is allocated by PyTorch, and 18.00 GiB is reserved by PyTorch but unallocated.\n",
            )],
        );
    }

    #[test]
    fn slack_does_not() {
        near_miss(
            &RULE,
            "vram_exhausted",
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
            )],
        );
    }
}
