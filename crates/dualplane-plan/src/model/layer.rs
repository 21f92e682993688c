//! Kinds of layers: how one mixes tokens and what follows it.

use serde::Serialize;

/// How far back an attention layer looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Everything.
    Full,
    /// The last so many tokens.
    Sliding(u64),
    /// Its chunk of so many tokens.
    Chunked(u64),
    /// What the encoder made of the input, whatever was generated.
    Encoder,
}

/// Normalisation of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QkNorm {
    /// None.
    #[default]
    None,
    /// One weight of the head size each.
    PerHead,
    /// One weight over all heads of the rank each.
    Whole,
}

/// Attention with keys and values per head (MHA, GQA, MQA).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Gqa {
    /// Query heads.
    pub heads: u64,
    /// KV heads.
    pub kv_heads: u64,
    /// Elements per query and key head.
    pub head_dim: u64,
    /// Elements per value head.
    pub v_head_dim: u64,
    /// How far it looks.
    pub reach: Reach,
    /// Bias on q, k and v.
    pub qkv_bias: bool,
    /// Bias on the output projection.
    pub o_bias: bool,
    /// Normalisation of q and k.
    pub qk_norm: QkNorm,
    /// A learned sink per head.
    pub sinks: bool,
    /// The query projection also makes an output gate of the same width.
    pub output_gate: bool,
    /// Outputs for each head of a projection of its own that makes a gate; 0: there is none.
    pub gate_per_head: u64,
    /// Reads the KV of an earlier layer and stores none.
    pub shares_kv: bool,
    /// Has no projection of keys and values, though its cache may be its own.
    pub query_only: bool,
    /// Tokens of short convolutions whose inputs it keeps in pages of their own; 0: none.
    pub convolves: u64,
    /// Values are the keys; there is no value projection in the checkpoint.
    pub k_is_v: bool,
}

/// The token selector of sparse MLA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Indexer {
    /// Heads.
    pub heads: u64,
    /// Elements per head.
    pub head_dim: u64,
    /// Tokens it selects.
    pub top_k: u64,
    /// False where the layer uses the selection of an earlier one.
    pub own: bool,
}

/// Multi-head latent attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Mla {
    /// Heads.
    pub heads: u64,
    /// Latent width of queries; 0: projected directly.
    pub q_lora_rank: u64,
    /// Latent width of keys and values.
    pub kv_lora_rank: u64,
    /// Elements per head without rotation.
    pub nope_dim: u64,
    /// Elements per head with rotation.
    pub rope_dim: u64,
    /// Elements per value head.
    pub v_dim: u64,
    /// Sparse attention.
    pub indexer: Option<Indexer>,
    /// A gate on the output projection's input.
    pub output_gate: bool,
}

/// Attention over a window and a compressed past (DeepSeek-V4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct CompressedMla {
    /// Query heads.
    pub heads: u64,
    /// Elements per head.
    pub head_dim: u64,
    /// Elements with rotation.
    pub rope_dim: u64,
    /// Latent width of queries.
    pub q_lora_rank: u64,
    /// Latent width of the output, per group.
    pub o_lora_rank: u64,
    /// Groups of the output projection.
    pub o_groups: u64,
    /// Window, in tokens.
    pub window: u64,
    /// Tokens per compressed entry; 0: no compression.
    pub ratio: u64,
    /// Selector.
    pub indexer: Indexer,
}

/// Mamba-2 state space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Mamba2 {
    /// Channels: the width of its projections and, with the groups' states, of its convolution.
    pub inner: u64,
    /// Heads.
    pub heads: u64,
    /// Elements per head.
    pub head_dim: u64,
    /// Groups.
    pub groups: u64,
    /// State width.
    pub state: u64,
    /// Convolution width.
    pub conv: u64,
    /// Chunk, in tokens.
    pub chunk: u64,
    /// Bias of the projections.
    pub bias: bool,
    /// Bias of the convolution.
    pub conv_bias: bool,
}

/// The first state space, with a state for each channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Mamba1 {
    /// Channels.
    pub inner: u64,
    /// State width.
    pub state: u64,
    /// Convolution width.
    pub conv: u64,
    /// Latent width of the time step.
    pub dt_rank: u64,
    /// Bias of the convolution.
    pub conv_bias: bool,
}

/// A gated short convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct ShortConv {
    /// Channels.
    pub width: u64,
    /// Tokens that it sees.
    pub conv: u64,
}

/// Gated DeltaNet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct GatedDelta {
    /// Key heads.
    pub k_heads: u64,
    /// Value heads.
    pub v_heads: u64,
    /// Elements per key head.
    pub k_dim: u64,
    /// Elements per value head.
    pub v_dim: u64,
    /// Convolution width.
    pub conv: u64,
}

/// Kimi Delta Attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Kda {
    /// Heads.
    pub heads: u64,
    /// Elements per head.
    pub head_dim: u64,
    /// Convolution width.
    pub conv: u64,
    /// One projection of the output gate instead of two narrow ones.
    pub full_rank_gate: bool,
    /// Its decay is bounded from below, as the kernel that keeps checkpoints wants it.
    pub bounded: bool,
}

/// How a layer mixes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// Not at all.
    None,
    /// Keys and values per head.
    Gqa(Gqa),
    /// Latent keys and values.
    Mla(Mla),
    /// Latent keys and values that are expanded before they are kept: a cache per head.
    Expanded(Mla),
    /// Window and compressed past.
    Compressed(CompressedMla),
    /// Mamba.
    Mamba1(Mamba1),
    /// Mamba-2.
    Mamba2(Mamba2),
    /// Short convolution.
    ShortConv(ShortConv),
    /// Gated DeltaNet.
    GatedDelta(GatedDelta),
    /// Kimi Delta Attention.
    Kda(Kda),
}

impl Attention {
    /// Whether it keeps a state of fixed size instead of a row for each token.
    #[must_use]
    pub const fn is_state(&self) -> bool {
        matches!(
            self,
            Self::Mamba1(_) | Self::Mamba2(_) | Self::ShortConv(_) | Self::GatedDelta(_) | Self::Kda(_)
        )
    }
}

impl Mla {
    /// The cache of a layer that expands its latent keys and values: as wide for values as for keys.
    #[must_use]
    pub const fn expanded(&self) -> Gqa {
        let head_dim = self.nope_dim.saturating_add(self.rope_dim);
        Gqa {
            heads: self.heads,
            kv_heads: self.heads,
            head_dim,
            v_head_dim: head_dim,
            reach: Reach::Full,
            qkv_bias: false,
            o_bias: false,
            qk_norm: QkNorm::None,
            sinks: false,
            output_gate: false,
            gate_per_head: 0,
            shares_kv: false,
            query_only: false,
            convolves: 0,
            k_is_v: false,
        }
    }
}

/// Routed experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Moe {
    /// Routed experts.
    pub experts: u64,
    /// Choices of the router that compute nothing.
    pub zero_experts: u64,
    /// Chosen per token.
    pub top_k: u64,
    /// Width of one expert.
    pub intermediate: u64,
    /// Width that experts read, where it is not the hidden size.
    pub latent: Option<u64>,
    /// Whether experts have a gate projection.
    pub gated: bool,
    /// Bias on the experts.
    pub bias: bool,
    /// Width of all shared experts together; 0: none.
    pub shared_intermediate: u64,
    /// A gate on the shared experts.
    pub shared_gate: bool,
    /// A correction bias on the router.
    pub router_correction: bool,
    /// Bytes of one element of the correction bias.
    pub correction_bytes: u64,
    /// Bias on the router.
    pub router_bias: bool,
    /// Bytes of one element of the router; 0: the model's dtype.
    pub router_bytes: u64,
    /// Choices come from a table by token (its rows), not from the router's scores.
    pub hash_table_rows: u64,
    /// A dense feed-forward of this width beside the experts.
    pub dense_beside: u64,
}

/// What follows the mixing of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedForward {
    /// Nothing.
    None,
    /// One dense network.
    Dense {
        /// Width.
        intermediate: u64,
        /// Whether it has a gate projection.
        gated: bool,
        /// Bias on its projections.
        bias: bool,
    },
    /// Experts.
    Moe(Moe),
}

/// One layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Layer {
    /// Mixing of tokens.
    pub attention: Attention,
    /// What follows.
    pub feed_forward: FeedForward,
    /// Norms of the hidden size.
    pub norms: u64,
}
