//! GPU planes of engines that divide the card their own way.
//!
//! SGLang and TensorRT-LLM share vLLM's reading of models and its shapes of weights (`shapes.rs`); what they reserve and
//! how they cut their pools is their own.

pub mod llama_cpp;
pub mod sglang;
mod shapes;
pub mod tgi;
pub(crate) mod trtllm;

pub use sglang::SglangFlags;
pub(crate) use shapes::Shapes;
