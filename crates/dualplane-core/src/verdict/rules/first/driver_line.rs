//! The driver says in the kernel log that it was refused host memory.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "driver_line";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::HostAllocFailure],
    "the kernel log holds the driver's line about host memory that it was refused",
    "the same line about the GPU of another pod, or on another node",
    "NVIDIA driver: NVRM lines in the kernel log",
    |case| super::judge(case, ID, "the kernel log holds no line of the driver about refused host memory"),
);
