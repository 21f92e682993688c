//! A printout shows strangers on the only card, where the message has no sizes of it.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_neighbour_listed";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::GpuCapacityConflict],
    "processes that are none of the engine's are listed on the only card, and hold what was asked for (half of the card where no size is told)",
    "the engine's own ranks; several cards, and nothing tells which one is the pod's",
    "nvidia-smi: processes by card",
    |case| super::judge(case, ID, "no printout shows strangers that hold what was asked for"),
);
