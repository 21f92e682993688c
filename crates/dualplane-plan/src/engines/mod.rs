//! GPU planes, one folder an engine: each divides the card its own way.
//!
//! SGLang and TensorRT-LLM share vLLM's reading of models and its shapes of weights (`shapes.rs`); what they reserve and
//! how they cut their pools is their own.

pub mod llama_cpp;
pub mod sglang;
mod shapes;
pub mod tgi;
pub(crate) mod trtllm;
pub(crate) mod vllm;

pub(crate) use shapes::Shapes;

use self::vllm::prepare::Prepared;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::Model;
use crate::outcome::{Plan, PlanError};
use crate::version::EngineKind;

/// The plan for one launch of a model on one kind of card.
///
/// # Errors
/// [`PlanError::Contradiction`] where the engine rejects the configuration before it takes memory,
/// [`PlanError::Unsupported`] where its arithmetic is not known here.
pub fn plan(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Plan, PlanError> {
    match launch.engine {
        EngineKind::Vllm => Prepared::new(model, launch, gpu)?.plan(model, launch, gpu),
        EngineKind::Sglang => sglang::plan(model, launch, gpu),
        EngineKind::TensorrtLlm => trtllm::plan(model, launch, gpu),
        other => Err(PlanError::unsupported(format!("GPU memory of {other}"))),
    }
}
