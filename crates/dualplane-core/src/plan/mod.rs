//! How a model server's memory will divide, before it runs: **model + launch + card → plan**.
//!
//! [`model`] reads a model's own files into layers by kind; [`Launch`] is what was asked of the engine; [`Gpu`] the card.
//! `weights` counts tensors per rank, `kv` turns layers into pages and groups, `pool` divides the card's memory and says
//! what the engine would print. Quantities are intervals with the formula and source of every addend. What is not known
//! is an error or an [`Unknown`], never an approximation in silence.

mod arith;
mod gpu;
mod launch;
pub mod model;
mod outcome;
mod quantity;
mod version;

pub use gpu::Gpu;
pub use launch::{CudaGraphs, Launch, Lora, MaxModelLen, Speculation, Speculative};
pub use model::Model;
pub use outcome::{
    GpuPlan, HostPlan, KvGroup, KvPlan, Plan, PlanError, Refusal, Resolved, TensorClass, Verdict,
};
pub use quantity::{Plane, Quantity, Term, Unknown};
pub use version::{EngineKind, Version};

/// The plan for one launch of a model on one kind of card.
///
/// # Errors
/// [`PlanError::Contradiction`] where the engine rejects the configuration before it takes memory,
/// [`PlanError::Unsupported`] where its arithmetic is not known here.
pub fn plan(_model: &Model, launch: &Launch, _gpu: &Gpu) -> Result<Plan, PlanError> {
    Err(PlanError::unsupported(format!("{} {}", launch.engine, launch.version)))
}
