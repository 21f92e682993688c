//! vLLM: what its budget divides, how its layers become pages, and what its pool holds.

pub(crate) mod budget;
mod cpu;
pub(crate) mod kv;
pub(crate) mod pool;
pub(crate) mod prepare;
pub(crate) mod sweep;
