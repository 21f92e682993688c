//! Flags that only SGLang has, as far as they change VRAM.

use serde::Serialize;

/// `None` and `false` are "not given".
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SglangFlags {
    /// `--enable-dp-attention`: `--dp` divides the ranks of attention instead of copying the server.
    pub dp_attention: bool,
    /// `--chunked-prefill-size -1`: prompts are not cut.
    pub whole_prompts: bool,
    /// `--max-prefill-tokens`, in tokens.
    pub max_prefill_tokens: Option<u64>,
    /// `--max-total-tokens`: the pool is at most this many tokens.
    pub max_total_tokens: Option<u64>,
    /// `--swa-full-tokens-ratio`: tokens of window layers for each token of full ones.
    pub swa_full_tokens_ratio: Option<f64>,
    /// `--disable-hybrid-swa-memory`: windows are billed as full.
    pub disable_hybrid_swa_memory: bool,
    /// `--mamba-full-memory-ratio`: bytes of states for each byte of the KV pool.
    pub mamba_full_memory_ratio: Option<f64>,
    /// `--max-mamba-cache-size`, in states.
    pub max_mamba_cache_size: Option<u64>,
    /// `--disable-radix-cache`.
    pub disable_radix_cache: bool,
    /// No CUDA graphs for decoding.
    pub no_decode_graphs: bool,
    /// No CUDA graphs for prompts.
    pub no_prefill_graphs: bool,
    /// `--disaggregation-mode` (`null`, `prefill`, `decode`).
    pub disaggregation: Option<String>,
    /// `--moe-a2a-backend deepep`.
    pub deepep: bool,
}
