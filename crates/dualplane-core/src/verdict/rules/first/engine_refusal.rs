//! The engine's own check names another cause on the GPU.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "engine_refusal";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::GpuCapacityConflict, Class::Fragmentation, Class::MigSliceTooSmall],
    "the engine itself says that others hold the card, that memory is in pieces, or that the MIG instance cannot be used so",
    "free VRAM in a printout of another moment",
    "each signature's own source: dualplane explain SIGNATURE",
    |case| super::judge(case, ID, "no line of the engine names a neighbour, fragmentation or a MIG instance"),
);
