//! What an engine makes of a launch: flags that were left open have their values.

use crate::model::Dtype;

/// An attention backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    /// Block that the engine chooses where none is asked for.
    pub(crate) preferred: u64,
    /// Blocks are multiples of this.
    pub(crate) grain: u64,
    /// Blocks of layers with a window have at least so many tokens.
    pub(crate) windowed: u64,
}

/// Whether a KV dtype has 8 bits or fewer.
pub(crate) fn is_quantised(kv_dtype: &str) -> bool {
    ["fp8", "nvfp4", "int8", "int4"].iter().any(|p| kv_dtype.starts_with(p))
}

/// A launch with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settled {
    pub(crate) dtype: Dtype,
    pub(crate) kv_dtype: String,
    pub(crate) backend: Backend,
    pub(crate) max_model_len: u64,
    /// Whether the length may be shortened to fit.
    pub(crate) fit_len: bool,
    pub(crate) max_num_seqs: u64,
    pub(crate) max_num_batched_tokens: u64,
    pub(crate) in_flight: u64,
    pub(crate) utilisation: f64,
    pub(crate) prefix_caching: bool,
    /// Tokens proposed ahead.
    pub(crate) ahead: u64,
}
