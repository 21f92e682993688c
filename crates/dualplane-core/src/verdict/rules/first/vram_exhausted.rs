//! A VRAM allocation failed, and its sizes show that this process filled the card.

use super::{Rule, first};
use crate::verdict::Class;

pub(in crate::verdict) const ID: &str = "vram_exhausted";

pub(in crate::verdict) const RULE: Rule = first(
    ID,
    &[Class::CudaOomLoad, Class::CudaOomRuntime],
    "a VRAM error with sizes that show neither a neighbour nor fragmentation; loading, profiling and capturing make it cuda_oom_load, serving cuda_oom_runtime",
    "an error after which the engine retries with a smaller buffer",
    "PyTorch, CUDA and ggml: out-of-memory messages with sizes",
    |case| super::judge(case, ID, "no VRAM error with sizes stands in the evidence"),
);
