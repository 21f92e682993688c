//! A VRAM allocation failed, and its sizes show that this process filled the card.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_exhausted";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::CudaOomLoad, Class::CudaOomRuntime],
    "a VRAM error with sizes that show neither another process nor fragmentation; cuda_oom_load while \
    loading, profiling or capturing, cuda_oom_runtime while serving",
    "an error after which the engine retries with a smaller buffer",
    "PyTorch, CUDA and ggml: out-of-memory messages with sizes",
    |case| super::judge(case, ID, "the evidence contains no VRAM error with sizes"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn a_card_full_of_this_process_decides() {
        holds(
            &RULE,
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
            )],
        );
    }

    #[test]
    fn a_card_full_of_others_does_not() {
        near_miss(
            &RULE,
            "vram_neighbour",
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 30.00 GiB memory in use. Of the allocated memory 28.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
            )],
        );
    }
}
