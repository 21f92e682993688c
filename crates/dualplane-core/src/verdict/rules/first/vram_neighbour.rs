//! By the numbers of the message, others hold what was needed.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_neighbour";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::GpuCapacityConflict],
    "total − free − this process is 15 % of the card or more, and with the free memory covers the request",
    "others hold less than 15 %: contexts and display",
    "PyTorch c10/cuda/CUDACachingAllocator.cpp: the OutOfMemoryError's sizes",
    |case| super::judge(case, ID, "no VRAM error has sizes that show a neighbour"),
);
