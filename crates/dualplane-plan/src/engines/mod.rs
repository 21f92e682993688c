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
use crate::model::{Attention, Model, Reach};
use crate::outcome::{Plan, PlanError};
use crate::version::EngineKind;

/// The plan for one launch of a model on one kind of card.
///
/// # Errors
/// [`PlanError::Contradiction`] where the engine rejects the configuration before it takes memory,
/// [`PlanError::Unsupported`] where its arithmetic is not known here.
pub fn plan(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Plan, PlanError> {
    // Only vLLM's plan has the wide bounds of an estimate.
    if let (Some(what), true) = (&model.estimated, launch.engine != EngineKind::Vllm) {
        return Err(PlanError::unsupported(what.clone()));
    }
    // What these keep of such layers is read in vLLM's source only, and that of convolutions in SGLang's as well.
    let convolves = launch.engine == EngineKind::Sglang;
    let read_in_vllm = |a: &Attention| {
        matches!(a, Attention::Mamba1(_) | Attention::Expanded(_))
            || matches!(a, Attention::ShortConv(_)) && !convolves
            || matches!(a, Attention::Gqa(g) if g.reach == Reach::Encoder)
    };
    if launch.engine != EngineKind::Vllm && model.layers.iter().any(|l| read_in_vllm(&l.attention)) {
        return Err(PlanError::unsupported(format!("{} on {}", model.architecture, launch.engine)));
    }
    match launch.engine {
        EngineKind::Vllm => Prepared::new(model, launch, gpu)?.plan(model, launch, gpu),
        EngineKind::Sglang => sglang::plan(model, launch, gpu),
        EngineKind::TensorrtLlm => trtllm::plan(model, launch, gpu),
        other => Err(PlanError::unsupported(format!("GPU memory of {other}"))),
    }
}
