//! What a command line of llama.cpp asks for.

use serde::Serialize;

/// How a model is divided among cards (`--split-mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Everything on the main card.
    None,
    /// Whole layers, each with its KV cache.
    #[default]
    Layer,
    /// Rows of each matrix.
    Row,
    /// Tensor parallelism.
    Tensor,
}

/// Flags that only llama.cpp has. `None` is "not given".
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct LlamaCppAsk {
    /// `--n-gpu-layers`; `None`: automatic, everything that fits.
    pub gpu_layers: Option<u64>,
    /// `--split-mode`.
    pub split: Split,
    /// `--tensor-split`: share of each card.
    pub tensor_split: Vec<f64>,
    /// `--cache-type-k`.
    pub cache_type_k: Option<String>,
    /// `--cache-type-v`.
    pub cache_type_v: Option<String>,
    /// `--ubatch-size`, in tokens.
    pub ubatch: Option<u64>,
    /// `--batch-size`, in tokens.
    pub batch: Option<u64>,
    /// `--kv-unified`, `--no-kv-unified`.
    pub unified: Option<bool>,
    /// `--swa-full`.
    pub swa_full: bool,
    /// `--flash-attn on` or `off`; `None`: automatic.
    pub flash_attention: Option<bool>,
    /// `--no-kv-offload`: the KV cache stays in RAM.
    pub kv_in_ram: bool,
    /// `--fit off`: nothing is lowered to fit.
    pub no_fit: bool,
    /// `--fit-target` in bytes: what is left free on each card.
    pub fit_target: Option<u64>,
    /// `--fit-ctx`: tokens that fitting does not go below.
    pub fit_context: Option<u64>,
    /// `--cpu-moe`: experts of all layers stay in RAM; `--n-cpu-moe N`: of the first so many.
    pub experts_in_ram: u64,
    /// `OLLAMA_CONTEXT_LENGTH` and the like: Ollama multiplies the context by the requests.
    pub ollama: bool,
    /// The quantisation is the one that is fetched where none is named.
    pub usual_quantization: bool,
}
