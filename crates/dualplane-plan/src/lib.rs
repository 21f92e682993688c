//! How a model server's memory will divide, before it runs: **model + launch + card → plan**.
//!
//! [`model`] reads a model's own files into layers by kind; [`Launch`] is what was asked of the engine; [`Gpu`] the card.
//! `weights` counts tensors per rank, `kv` turns layers into pages and groups, `pool` divides the card's memory and says
//! what the engine would print. Quantities are intervals with the formula and source of every addend. What is not known
//! is an error or an [`Unknown`], never an approximation in silence. [`preflight`] compares a plan with the machine as it is
//! now; [`report`] renders both. Nothing here reads logs, clusters or files.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod answer;
mod arith;
mod calibrate;
pub mod card;
pub mod catalogue;
pub mod choose;
pub mod cli;
mod drafter;
pub mod edges;
pub mod engines;
pub mod fit;
mod gpu;
pub mod host;
mod launch;
pub mod model;
mod outcome;
mod pasteable;
pub mod preflight;
mod printed;
#[cfg(test)]
#[allow(clippy::string_slice)]
mod properties;
mod quantity;
pub mod repair;
pub mod report;
pub mod rough;
pub mod stages;
pub mod traffic;
mod version;
pub mod ways;
mod weights;

pub use answer::{Answer, Named, answer};
pub use calibrate::{CALIBRATION, Calibration, Measured, compare};
pub use dualplane_base::Version;
pub use engines::plan;
pub use engines::vllm::prepare::Prepared;
pub use engines::vllm::sweep::{At, Point};
pub use gpu::Gpu;
pub use launch::{
    Changed, CudaGraphs, HostAsk, Launch, LlamaCppAsk, Lora, MaxModelLen, PodAsk, SglangFlags, Speculation,
    Speculative, Split, TgiAsk,
};
pub use model::Model;
pub use outcome::{
    GpuPlan, HostPlan, KvGroup, KvPlan, Plan, PlanError, Refusal, Resolved, TensorClass, Verdict,
};
pub use pasteable::{Pasteable, pasteable};
pub use printed::Printed;
pub use quantity::{Plane, Quantity, Term, Unknown};
pub use version::{EngineKind, NEWEST_SGLANG, NEWEST_TENSORRT_LLM, NEWEST_VLLM};
