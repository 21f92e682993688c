//! The engine or a driver's line names a GPU fault in words.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "gpu_fault_line";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::XidHardware],
    "a log line tells of a fault: an illegal access, an uncorrectable ECC error, a launch failure, a lost GPU",
    "an out-of-memory error that CUDA reports late under another call",
    "CUDA error texts (cudaGetErrorString), NVRM lines",
    |case| super::judge(case, ID, "no log line names a fault of the GPU"),
);
