//! The engine or a driver's line names a GPU fault in words.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "gpu_fault_line";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::XidHardware],
    "a log line reports a fault: an illegal access, an uncorrectable ECC error, a launch failure, a lost GPU",
    "an out-of-memory error that CUDA reports late, in another call",
    "CUDA error texts (cudaGetErrorString), NVRM lines",
    |case| super::judge(case, ID, "no log line reports a GPU fault"),
);

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{holds, log, near_miss};

    #[test]
    fn an_illegal_access_decides() {
        holds(&RULE, &[log("RuntimeError: CUDA error: an illegal memory access was encountered\n")]);
    }

    #[test]
    fn memory_that_ran_out_does_not() {
        near_miss(&RULE, "vram_unsized", &[log("RuntimeError: CUDA error: out of memory\n")]);
    }
}
