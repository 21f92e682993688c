//! GPU planes of engines that divide the card their own way.

pub mod llama_cpp;
pub mod tgi;
