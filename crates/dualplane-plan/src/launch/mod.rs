//! What was asked of the engine: the flags that change its memory.

mod changed;
mod command_line;
mod host;
mod llama_cpp;
mod ranks;
mod settled;
mod sglang;
mod tgi;

pub use changed::Changed;
pub use command_line::CommandLine;
pub use host::{HostAsk, PodAsk};
pub use llama_cpp::{LlamaCppAsk, Split};
pub(crate) use ranks::{kv_heads, stage_of};
pub(crate) use settled::{Backend, Settled, is_quantised};
pub use sglang::SglangFlags;
pub use tgi::TgiAsk;

use serde::Serialize;

use super::outcome::PlanError;
use super::version::EngineKind;
use dualplane_base::Version;

/// `--max-model-len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxModelLen {
    /// Not given: the model's own.
    #[default]
    Model,
    /// `-1` or `auto`: as many tokens as fit, at most the model's own.
    Fit,
    /// Given, in tokens.
    Tokens(u64),
}

/// Which method proposes tokens ahead (`--speculative-config`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speculation {
    /// The checkpoint's own multi-token-prediction layers.
    Mtp,
    /// EAGLE drafter: one layer with a head of its own.
    Eagle,
    /// EAGLE-3 drafter.
    Eagle3,
    /// A whole draft model.
    DraftModel,
    /// Prompt look-up: no weights, no KV.
    Ngram,
    /// Another method, whose memory is not known.
    Other,
}

/// `--speculative-config`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Speculative {
    /// Method.
    pub method: Speculation,
    /// Tokens proposed ahead of each step.
    pub num_tokens: u64,
    /// Id or path of the drafter, where one is loaded.
    pub model: Option<String>,
}

/// `--enable-lora` and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lora {
    /// `--max-loras`: adapters on the GPU at once.
    pub max_loras: u64,
    /// `--max-lora-rank`.
    pub max_rank: u64,
    /// `--max-cpu-loras`: adapters kept in host memory.
    pub max_cpu_loras: u64,
    /// `--fully-sharded-loras`.
    pub fully_sharded: bool,
}

/// `--cudagraph-mode` and `--cudagraph-capture-sizes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CudaGraphs {
    /// `cudagraph_mode` in capitals (`NONE`, `PIECEWISE`, `FULL_AND_PIECEWISE`); `None`: the engine's default.
    pub mode: Option<String>,
    /// Batch sizes to capture; `None`: the engine's default.
    pub sizes: Option<Vec<u64>>,
    /// Largest batch size to capture.
    pub max_size: Option<u64>,
}

/// An engine's command line as far as it changes memory. `None` is "not given": the engine's default for its version.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Launch {
    /// Engine.
    pub engine: EngineKind,
    /// Whether towers are counted for an engine that pads what ranks cannot share evenly.
    pub uneven_towers: bool,
    /// Its version; it decides the formulas.
    pub version: Version,
    /// Whether the version was found (false: the newest known is assumed, which is to be said).
    pub version_known: bool,
    /// `--tensor-parallel-size`.
    pub tp: u64,
    /// `--pipeline-parallel-size`.
    pub pp: u64,
    /// `--data-parallel-size`.
    pub dp: u64,
    /// `--decode-context-parallel-size`.
    pub dcp: u64,
    /// `--prefill-context-parallel-size`.
    pub pcp: u64,
    /// `--enable-expert-parallel`.
    pub expert_parallel: bool,
    /// Redundant experts of `--eplb-config`.
    pub redundant_experts: u64,
    /// `--max-model-len`.
    pub max_model_len: MaxModelLen,
    /// `VLLM_ALLOW_LONG_MAX_MODEL_LEN=1`: a length beyond the model's own is taken as given.
    pub allow_long_max_model_len: bool,
    /// `--max-num-seqs`.
    pub max_num_seqs: Option<u64>,
    /// `--max-num-batched-tokens`, in tokens.
    pub max_num_batched_tokens: Option<u64>,
    /// `--block-size`, in tokens.
    pub block_size: Option<u64>,
    /// `--gpu-memory-utilization`, share of the card's total.
    pub gpu_memory_utilization: Option<f64>,
    /// `--kv-cache-memory-bytes`: the pool as given.
    pub kv_cache_memory_bytes: Option<u64>,
    /// `VLLM_CPU_KVCACHE_SPACE`, in bytes: the pool of the CPU back end, whatever the flag says.
    pub cpu_kv_cache_bytes: Option<u64>,
    /// The pool that the engine printed ("Available KV cache memory"), in bytes: everything after it is then exact.
    pub available_kv_bytes: Option<u64>,
    /// What is free on the card before the start, in bytes, where that was measured; `None`: all of it.
    pub free_gpu_bytes: Option<u64>,
    /// `--num-gpu-blocks-override`.
    pub num_gpu_blocks_override: Option<u64>,
    /// `--kv-cache-dtype` (`auto`, `fp8`, `fp8_e4m3`, `fp8_e5m2`, `bfloat16`, `nvfp4`, ...).
    pub kv_cache_dtype: String,
    /// `--dtype` (`auto`, `bfloat16`, `float16`, `float32`, `half`).
    pub dtype: String,
    /// `--quantization`.
    pub quantization: Option<String>,
    /// `--enforce-eager`.
    pub enforce_eager: bool,
    /// CUDA graphs.
    pub cuda_graphs: CudaGraphs,
    /// LoRA.
    pub lora: Option<Lora>,
    /// Speculative decoding.
    pub speculative: Option<Speculative>,
    /// `--enable-prefix-caching` or `--no-enable-prefix-caching`.
    pub prefix_caching: Option<bool>,
    /// `--mamba-cache-mode`.
    pub mamba_cache_mode: Option<String>,
    /// `--mamba-ssm-cache-dtype`.
    pub mamba_ssm_cache_dtype: Option<String>,
    /// `--async-scheduling` or `--no-async-scheduling`.
    pub async_scheduling: Option<bool>,
    /// `--enable-chunked-prefill` or `--no-enable-chunked-prefill`.
    pub chunked_prefill: Option<bool>,
    /// `--disable-hybrid-kv-cache-manager`: every window layer is billed as full.
    pub disable_hybrid_kv_cache_manager: bool,
    /// `--language-model-only`, or every limit of `--limit-mm-per-prompt` zero: no encoder is built.
    pub language_model_only: bool,
    /// `--mm-encoder-tp-mode data`: the encoder is whole on each rank.
    pub encoder_data_parallel: bool,
    /// `--skip-mm-profiling`: the encoder's peak is not subtracted from the pool.
    pub skip_mm_profiling: bool,
    /// `--trust-remote-code`: code that comes with the checkpoint may run.
    #[serde(skip)]
    pub trust_remote_code: bool,
    /// `--swap-space` in bytes per GPU (V0).
    pub swap_space_bytes: Option<u64>,
    /// `--cpu-offload-gb` in bytes per GPU: weights that live in pinned host memory.
    pub cpu_offload_bytes: u64,
    /// `--kv-offloading-size` in bytes over all ranks.
    pub kv_offload_bytes: u64,
    /// `--load-format`.
    pub load_format: String,
    /// `--api-server-count`.
    pub api_servers: u64,
    /// `--mm-processor-cache-gb` in bytes.
    pub mm_processor_cache_bytes: Option<u64>,
    /// `--attention-backend`.
    pub attention_backend: Option<String>,
    /// `VLLM_ATTENTION_BACKEND`, which vLLM read up to 0.14.
    pub attention_backend_by_env: Option<String>,
    /// `VLLM_USE_V2_MODEL_RUNNER`.
    pub v2_runner: Option<bool>,
    /// `VLLM_USE_V1=0`: the first engine, which was the only one before 0.8.0.
    pub first_engine: bool,
    /// What only SGLang's command line has.
    pub sglang: SglangFlags,
}

impl Launch {
    /// GPUs that it takes in all.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        // SGLang's data-parallel attention shares the ranks instead of adding some.
        let copies = if self.sglang.dp_attention { 1 } else { self.dp };
        self.tp.saturating_mul(self.pp).saturating_mul(copies)
    }

    /// The attention backend that vLLM is told to take.
    pub(crate) fn asked_backend(&self) -> Option<&str> {
        let by_env = self.attention_backend_by_env.as_deref().filter(|_| self.version < Version(0, 15, 0));
        self.attention_backend.as_deref().or(by_env).filter(|name| !name.eq_ignore_ascii_case("auto"))
    }

    /// The length that a flag asks for, where one does, within what the model has. `name` is the engine's word for it, and
    /// the variable `overrides` lets a longer one pass.
    pub(crate) fn asked_len(
        &self,
        longest: u64,
        flag: &str,
        name: &str,
        overrides: &str,
    ) -> Result<Option<u64>, PlanError> {
        match self.max_model_len {
            MaxModelLen::Tokens(0) => Err(PlanError::contradiction(flag, "0 tokens")),
            MaxModelLen::Tokens(n) if n > longest && !self.allow_long_max_model_len => {
                Err(PlanError::contradiction(
                    flag,
                    format!(
                        "User-specified {name} ({n}) is greater than the derived {name} ({}); {overrides}=1 overrides this",
                        longest
                    ),
                ))
            }
            MaxModelLen::Tokens(n) => Ok(Some(n)),
            MaxModelLen::Model | MaxModelLen::Fit => Ok(None),
        }
    }

    /// Whether the first engine serves ("V0").
    #[must_use]
    pub fn is_first_engine(&self) -> bool {
        self.first_engine && self.version < Version(0, 11, 0) || self.version < Version(0, 8, 0)
    }
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            engine: EngineKind::Vllm,
            uneven_towers: false,
            version: crate::NEWEST_VLLM,
            version_known: false,
            tp: 1,
            pp: 1,
            dp: 1,
            dcp: 1,
            pcp: 1,
            expert_parallel: false,
            redundant_experts: 0,
            max_model_len: MaxModelLen::Model,
            allow_long_max_model_len: false,
            max_num_seqs: None,
            max_num_batched_tokens: None,
            block_size: None,
            gpu_memory_utilization: None,
            kv_cache_memory_bytes: None,
            cpu_kv_cache_bytes: None,
            available_kv_bytes: None,
            free_gpu_bytes: None,
            num_gpu_blocks_override: None,
            kv_cache_dtype: "auto".into(),
            dtype: "auto".into(),
            quantization: None,
            enforce_eager: false,
            cuda_graphs: CudaGraphs::default(),
            lora: None,
            speculative: None,
            prefix_caching: None,
            mamba_cache_mode: None,
            mamba_ssm_cache_dtype: None,
            async_scheduling: None,
            chunked_prefill: None,
            disable_hybrid_kv_cache_manager: false,
            language_model_only: false,
            encoder_data_parallel: false,
            skip_mm_profiling: false,
            trust_remote_code: false,
            swap_space_bytes: None,
            cpu_offload_bytes: 0,
            kv_offload_bytes: 0,
            load_format: "auto".into(),
            api_servers: 1,
            mm_processor_cache_bytes: None,
            attention_backend: None,
            attention_backend_by_env: None,
            v2_runner: None,
            first_engine: false,
            sglang: SglangFlags::default(),
        }
    }
}
