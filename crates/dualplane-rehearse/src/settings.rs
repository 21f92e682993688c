//! What of a launch and its plan decides how requests are scheduled.

use serde::Serialize;

/// The layers that share block ids, by what they keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// Every token until the request ends.
    All,
    /// The last so many tokens.
    Window(u32),
    /// The tokens since the last multiple of so many.
    Chunk(u32),
    /// So many blocks, however long the request is.
    Fixed(u32),
}

/// One group of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Tokens of a block.
    pub block_size: u32,
    /// What it keeps.
    pub keeps: Keeps,
}

/// Who goes first, and who is preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Who came first; the request that was admitted last is preempted.
    #[default]
    Fcfs,
    /// The smallest number first; the largest is preempted.
    Priority,
}

/// How the slots of llama.cpp's server share the cells of its KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cells {
    /// One cache for all slots (`--kv-unified`).
    Shared,
    /// Each slot has its part of the context.
    Own,
}

/// Settings of vLLM's scheduler (V1); with [`Settings::cells`] those of llama.cpp's server, whose blocks are cells of one token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// Block ids, the null block with them (`num_gpu_blocks`).
    pub blocks: u32,
    /// Groups of layers; each takes blocks of its own for a request.
    pub groups: Vec<Group>,
    /// `--max-num-seqs`.
    pub max_num_seqs: u32,
    /// `--max-num-batched-tokens`.
    pub max_num_batched_tokens: u32,
    /// `--max-model-len`.
    pub max_model_len: u32,
    /// `--long-prefill-token-threshold`; 0: none.
    pub long_prefill_token_threshold: u32,
    /// `--enable-chunked-prefill`.
    pub chunked_prefill: bool,
    /// A request is admitted only where blocks for its whole prompt are free (`scheduler_reserve_full_isl`).
    pub whole_prompt_must_fit: bool,
    /// Blocks that stay free when a request is admitted beside others (`--watermark` times the blocks).
    pub watermark_blocks: u32,
    /// `--enable-prefix-caching`.
    pub prefix_caching: bool,
    /// Blocks whose content nobody can ask for are taken again first; else all free ones stand in one line.
    pub unnamed_first: bool,
    /// `--scheduling-policy`.
    pub policy: Policy,
    /// The next step is scheduled while one runs (`--async-scheduling`).
    pub asynchronous: bool,
    /// Of llama.cpp's server: then `max_num_seqs` are its slots, `max_num_batched_tokens` its `--batch-size`, and
    /// `max_model_len` is the context of a slot. Nothing else of these settings is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<Cells>,
}

impl Settings {
    /// With one group of layers that keep everything, and what vLLM does when nothing else is said.
    #[must_use]
    pub fn plain(blocks: u32, block_size: u32) -> Self {
        Self {
            blocks,
            groups: vec![Group { block_size, keeps: Keeps::All }],
            max_num_seqs: 256,
            max_num_batched_tokens: 8192,
            max_model_len: u32::MAX,
            long_prefill_token_threshold: 0,
            chunked_prefill: true,
            whole_prompt_must_fit: true,
            watermark_blocks: 0,
            prefix_caching: true,
            unnamed_first: true,
            policy: Policy::Fcfs,
            asynchronous: true,
            cells: None,
        }
    }

    /// Blocks that requests can have: all but the null block.
    #[must_use]
    pub const fn usable(&self) -> u32 {
        self.blocks.saturating_sub(1)
    }

    /// Steps whose outcome may be open at once.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        if self.asynchronous { 2 } else { 1 }
    }
}

impl Group {
    /// Tokens at the beginning of a request that no later token looks at, once so many are computed.
    #[must_use]
    pub(crate) const fn skipped(&self, computed: u32) -> u32 {
        match self.keeps {
            Keeps::All | Keeps::Fixed(_) => 0,
            Keeps::Window(w) => computed.saturating_add(1).saturating_sub(w),
            // No chunk at all looks at everything.
            Keeps::Chunk(c) => match computed.checked_rem(c) {
                Some(begun) => computed - begun,
                None => 0,
            },
        }
    }

    /// Blocks for so many tokens, the skipped ones with them.
    #[must_use]
    pub(crate) const fn blocks(&self, tokens: u32) -> u32 {
        match self.keeps {
            Keeps::Fixed(n) => n,
            _ => tokens.div_ceil(if self.block_size == 0 { 1 } else { self.block_size }),
        }
    }

    /// The most blocks that are asked for at admission.
    #[must_use]
    pub(crate) fn most_blocks(&self, s: &Settings) -> u32 {
        let bounded = |keeps: u32| {
            let flying = s.max_num_batched_tokens.saturating_mul(s.in_flight());
            keeps.saturating_add(flying).min(s.max_model_len).div_ceil(self.block_size.max(1))
        };
        match self.keeps {
            Keeps::All | Keeps::Fixed(_) => u32::MAX,
            Keeps::Window(w) => bounded(w.saturating_sub(1)).saturating_add(1),
            Keeps::Chunk(c) => bounded(c),
        }
    }
}
