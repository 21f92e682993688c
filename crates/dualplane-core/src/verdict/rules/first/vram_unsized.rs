//! A VRAM allocation failed, and the message has no sizes.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_unsized";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::CudaOomLoad, Class::CudaOomRuntime],
    "a VRAM error without sizes: a neighbour or fragmentation cannot be excluded",
    "\"out of memory\" of the host",
    "CUDA and engines: out-of-memory messages without sizes",
    |case| super::judge(case, ID, "no VRAM error without sizes stands in the evidence"),
);
