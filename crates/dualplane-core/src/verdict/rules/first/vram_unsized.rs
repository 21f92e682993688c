//! A VRAM allocation failed, and the message has no sizes.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_unsized";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::CudaOomLoad, Class::CudaOomRuntime],
    "a VRAM error without sizes: another process or fragmentation cannot be ruled out",
    "\"out of memory\" on the host",
    "CUDA and engines: out-of-memory messages without sizes",
    |case| super::judge(case, ID, "the evidence contains no VRAM error without sizes"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn words_without_sizes_decide() {
        holds(&RULE, &[log("RuntimeError: CUDA error: out of memory\n")]);
    }

    #[test]
    fn sizes_say_more() {
        near_miss(
            &RULE,
            "vram_exhausted",
            &[log(
                "INFO 11-20 10:05:12 [model_runner.py:1108] Starting to load model m...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.50 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n",
            )],
        );
    }
}
