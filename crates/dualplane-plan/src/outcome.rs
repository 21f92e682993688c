//! What a plan says: the two planes, the verdict, and what it does not know.

use serde::Serialize;

use super::quantity::{Quantity, Term, Unknown};

/// Whether the engine would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It starts, at every plausible value of the uncertain terms.
    Fits,
    /// It refuses, at every plausible value.
    Refused,
    /// It depends on the uncertain terms.
    Uncertain,
}

/// The engine's refusal to serve one request of the maximum length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The text as the engine prints it.
    pub message: String,
    /// "the estimated maximum model length is N"; `None` where the engine names none.
    pub estimated_max_len: Option<u64>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The engine itself rejects this configuration before it takes memory.
    #[error("{names}: {why}")]
    Contradiction {
        /// The flag or config key to change: `--tensor-parallel-size`, `config.json: num_attention_heads`.
        names: String,
        /// What contradicts what.
        why: String,
    },
    /// The configuration may be good, but its arithmetic is not known here.
    #[error("not supported: {what}")]
    Unsupported {
        /// What is not known.
        what: String,
    },
    /// Its arithmetic is known, and the launch says too little for it.
    #[error("{what}: {settle}")]
    Missing {
        /// What cannot be told.
        what: String,
        /// What to give.
        settle: String,
    },
    /// The model's files cannot be read as what they should be.
    #[error("{file}: {why}")]
    Unreadable {
        /// Which file.
        file: String,
        /// What is wrong.
        why: String,
    },
}

impl PlanError {
    /// Two names that cannot both hold.
    #[must_use]
    pub fn contradiction(names: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Contradiction { names: names.into(), why: why.into() }
    }

    /// What has no arithmetic here.
    #[must_use]
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }

    /// What the launch does not say.
    #[must_use]
    pub fn missing(what: impl Into<String>, settle: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), settle: settle.into() }
    }
}

/// Bytes of one class of tensor on one rank. The classes are those of `by_class` of the oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorClass {
    /// Input embeddings.
    Embeddings,
    /// Output head, where it is not tied.
    LmHead,
    /// Attention of every kind, with state-space and linear attention.
    Attention,
    /// Dense feed-forward.
    Mlp,
    /// Routed and shared experts and their router.
    Moe,
    /// Normalisation.
    Norms,
    /// Encoder of images or sound, with its projector.
    Vision,
    /// Tables of rotary embeddings.
    Rotary,
    /// Other parameters and buffers.
    Other,
    /// Workspaces that kernels hold and no module names.
    Unattached,
}

impl TensorClass {
    /// All classes.
    pub const ALL: [Self; 10] = [
        Self::Embeddings,
        Self::LmHead,
        Self::Attention,
        Self::Mlp,
        Self::Moe,
        Self::Norms,
        Self::Vision,
        Self::Rotary,
        Self::Other,
        Self::Unattached,
    ];

    /// Stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Embeddings => "embeddings",
            Self::LmHead => "lm_head",
            Self::Attention => "attention",
            Self::Mlp => "mlp",
            Self::Moe => "moe",
            Self::Norms => "norms",
            Self::Vision => "vision",
            Self::Rotary => "rotary",
            Self::Other => "other",
            Self::Unattached => "unattached",
        }
    }
}

/// One group of layers that shares block ids, as the engine forms it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KvGroup {
    /// Layers in the group.
    pub layers: u64,
    /// Kind of its first layer: `full`, `sliding`, `chunked`, `mla`, `state`, ...
    pub kind: String,
    /// Tokens per block; for a state the distance of its checkpoints.
    pub block_size: u64,
    /// Bytes of one block of one layer (of all layers where the group mixes pages).
    pub page_bytes: u64,
    /// Blocks that one request of the maximum length takes.
    pub blocks_per_request: u64,
    /// Tokens of its window or chunk, where it has one and the engine's blocks follow it.
    #[serde(skip)]
    pub window: Option<u64>,
}

/// The KV cache of the tightest rank.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct KvPlan {
    /// The pool, in bytes ("Available KV cache memory").
    pub available_bytes: Quantity,
    /// Block ids.
    pub blocks: Quantity,
    /// Tokens as the engine prints them ("GPU KV cache size").
    pub tokens: Quantity,
    /// Requests of the maximum length at once, as printed, in hundredths: 2064 is `20.64x`.
    pub max_concurrency_hundredths: Quantity,
    /// Bytes of one block id over all layers.
    pub bytes_per_block: u64,
    /// Tokens per block after backend and hybrid alignment.
    pub block_size: u64,
    /// Bytes that one request of the maximum length needs.
    pub needed_bytes: u64,
    /// Resolved `max_model_len`, in tokens.
    pub max_model_len: u64,
    /// Slots paid for that hold no layer.
    pub padding_layers: u64,
    /// Groups.
    pub groups: Vec<KvGroup>,
}

/// VRAM of the tightest rank.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct GpuPlan {
    /// What the driver reports, in bytes.
    pub total_bytes: u64,
    /// What the engine may take: utilisation times total, in bytes.
    pub requested_bytes: u64,
    /// Weights, in bytes.
    pub weights_bytes: Quantity,
    /// Weights by class of tensor, in bytes; they sum to the expected weights.
    pub weights_by_class: Vec<(TensorClass, u64)>,
    /// Peak of activations while profiling, in bytes.
    pub activation_bytes: Quantity,
    /// CUDA graphs as the engine subtracts them, in bytes.
    pub cuda_graph_bytes: Quantity,
    /// Memory outside of the allocator of torch, and the runner's own buffers, in bytes.
    pub non_torch_bytes: Quantity,
    /// KV cache.
    pub kv_cache: KvPlan,
    /// Pipeline stage that the figures are of.
    pub tightest_stage: u64,
}

/// RAM of the pod. Filled in by the host plane.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HostPlan {
    /// Peak while loading, in bytes.
    pub load_peak_bytes: Quantity,
    /// Unreclaimable while serving, in bytes.
    pub steady_bytes: Quantity,
    /// Shared memory (`/dev/shm`), in bytes; part of both others.
    pub shm_bytes: Quantity,
    /// Page cache that loading fills and the kernel takes back, in bytes; part of neither.
    pub page_cache_bytes: Quantity,
}

/// How the engine resolved what the flags left open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Resolved {
    /// Architecture name.
    pub architecture: String,
    /// Weights' dtype.
    pub dtype: String,
    /// Quantisation method.
    pub quantization: Option<String>,
    /// Dtype of the KV cache.
    pub kv_cache_dtype: String,
    /// Attention backend that the block size was chosen for.
    pub attention_backend: String,
    /// Sequences per step.
    pub max_num_seqs: u64,
    /// Tokens per step.
    pub max_num_batched_tokens: u64,
    /// Tokens that scheduled steps may hold at once.
    pub max_in_flight_tokens: u64,
    /// Whether states of hybrids are checkpointed for prefix caching.
    pub prefix_caching: bool,
}

/// A whole plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// How open flags were resolved.
    pub resolved: Resolved,
    /// GPU plane.
    pub gpu: GpuPlan,
    /// Host plane, where it was computed.
    pub host: Option<HostPlan>,
    /// Whether it starts.
    pub verdict: Verdict,
    /// The refusal at the expected values, where there is one.
    pub refusal: Option<Refusal>,
    /// What the engine prints at its start, where that is no line of the KV cache as vLLM prints it.
    #[serde(skip)]
    pub printed: Option<String>,
    /// Whether more than the engine's own slack is estimated: the architecture is not known, and all bounds are wide.
    pub estimated: bool,
    /// Every addend with its formula and source.
    pub terms: Vec<Term>,
    /// What is not known.
    pub unknown: Vec<Unknown>,
}
