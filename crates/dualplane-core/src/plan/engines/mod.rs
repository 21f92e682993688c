//! GPU planes of engines other than vLLM. They share its reading of models and shapes of weights; what they reserve and
//! how they cut their pools is their own.

pub(crate) mod sglang;
mod shapes;
pub(crate) mod trtllm;

pub use sglang::SglangFlags;
pub(crate) use shapes::Shapes;
