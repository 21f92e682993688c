//! Enough was reserved, not in one piece.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_fragmented";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::Fragmentation],
    "reserved but unallocated memory covers the request (or does with the free memory, where it is 10 % of the card), and tensors fill less than 95 %",
    "slack of the allocator below 0.5 % of the card; tensors that fill 95 % of it",
    "PyTorch: \"reserved by PyTorch but unallocated\"",
    |case| super::judge(case, ID, "no VRAM error shows reserved memory that would have covered the request"),
);
