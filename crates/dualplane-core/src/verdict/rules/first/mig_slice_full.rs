//! VRAM ran out on a MIG instance that this process fills.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "mig_slice_full";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::MigSliceTooSmall],
    "a VRAM error on a MIG instance of which this process holds 75 %, or whose size the request exceeds, or that leaves no KV block",
    "a VRAM error on a MIG instance that others fill",
    "NVIDIA MIG user guide: profiles; PyTorch's allocator message",
    |case| super::judge(case, ID, "no VRAM error stands beside a MIG instance that this process fills"),
);
