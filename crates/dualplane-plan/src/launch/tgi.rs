//! What a command line of TGI asks for.

use serde::Serialize;

/// Flags that only TGI has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TgiAsk {
    /// `--max-input-tokens`.
    pub max_input_tokens: Option<u64>,
    /// `--max-batch-total-tokens`; models with flash attention ignore it.
    pub max_batch_total_tokens: Option<u64>,
    /// `TGI_WIGGLE_ROOM` in thousandths.
    pub room: Option<u64>,
}
