//! One layer's cache: bytes per block, and blocks per request.

use crate::arith::{ceil_div, round_up};

/// Kind of cache. Kinds differ in how many blocks a request holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Every token.
    Full,
    /// Every token, latent.
    Mla,
    /// The last tokens of a window.
    Sliding { window: u64 },
    /// The last tokens of a window, latent.
    SlidingMla { window: u64 },
    /// The current chunk.
    Chunked { chunk: u64 },
    /// What the encoder may hand over in one step.
    Cross,
    /// A state of fixed size, in so many blocks per request.
    State { blocks: u64 },
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Mla => "mla",
            Self::Sliding { .. } => "sliding",
            Self::SlidingMla { .. } => "sliding_mla",
            Self::Chunked { .. } => "chunked",
            Self::Cross => "cross",
            Self::State { .. } => "state",
        }
    }

    /// Tokens of its window or chunk.
    pub(crate) const fn window(self) -> Option<u64> {
        match self {
            Self::Sliding { window } | Self::SlidingMla { window } => Some(window),
            Self::Chunked { chunk } => Some(chunk),
            _ => None,
        }
    }

    /// Whether two kinds always need the same number of token slots (vLLM `is_uniform_with_collection`).
    pub(crate) fn same_slots(self, other: Self) -> bool {
        match (self, other) {
            (Self::Full | Self::Mla, Self::Full | Self::Mla) => true,
            (Self::Sliding { window: a }, Self::Sliding { window: b } | Self::SlidingMla { window: b })
            | (Self::SlidingMla { window: a }, Self::SlidingMla { window: b }) => a == b,
            (Self::Chunked { chunk: a }, Self::Chunked { chunk: b }) => a == b,
            (Self::State { blocks: a }, Self::State { blocks: b }) => a == b,
            (Self::Cross, Self::Cross) => true,
            _ => false,
        }
    }
}

/// A layer's cache. Two layers with equal specs can share block ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    /// Tokens per block.
    pub(crate) block: u64,
    /// Bytes per block, padding included.
    pub(crate) page: u64,
    /// Blocks start at multiples of this many bytes.
    pub(crate) stride: u64,
    /// What else tells specs apart: heads, elements of K and of V, bytes of an element.
    pub(crate) shape: [u64; 4],
}

/// What a request's need depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// Tokens of the request.
    pub(crate) len: u64,
    /// Tokens that scheduled steps may hold at once.
    pub(crate) in_flight: u64,
    /// Ranks that share the tokens of full layers.
    pub(crate) shards: u64,
    /// Tokens that a window keeps beyond its own for several draft modules.
    pub(crate) extra: u64,
    /// Tokens of one step, as many as an encoder may hand over.
    pub(crate) step: u64,
}

impl Spec {
    /// Blocks that a request holds at most (vLLM v1/kv_cache_interface.py `max_memory_usage_bytes`).
    pub(crate) fn blocks(&self, need: &Need) -> u64 {
        match self.kind {
            Kind::Full | Kind::Mla => ceil_div(ceil_div(need.len, need.shards), self.block),
            Kind::Sliding { window } | Kind::SlidingMla { window } => {
                let tokens =
                    (window.saturating_sub(1)).saturating_add(need.extra).saturating_add(need.in_flight);
                ceil_div(tokens.min(need.len), self.block).saturating_add(1)
            }
            Kind::Chunked { chunk } => {
                ceil_div(chunk.saturating_add(need.in_flight).min(need.len), self.block)
            }
            Kind::State { blocks } => blocks,
            Kind::Cross => ceil_div(need.step, self.block),
        }
    }

    /// Bytes between two blocks of this layer where layers lie one after the other.
    pub(crate) fn stride_bytes(&self) -> u64 {
        round_up(self.page, self.stride.max(1))
    }
}
