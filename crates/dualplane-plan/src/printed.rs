//! What an engine prints of a start, and what a plan predicts.

use serde::Serialize;

/// Figures as printed; sizes with the two decimals that logs have.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Printed {
    /// The card's total, in bytes.
    pub total: Option<u64>,
    /// Weights of one GPU, in bytes.
    pub weights: Option<u64>,
    /// Peak of activations, in bytes.
    pub activation: Option<u64>,
    /// Memory outside of torch, in bytes.
    pub non_torch: Option<u64>,
    /// Estimate of CUDA graphs that was subtracted, in bytes.
    pub graph_estimate: Option<u64>,
    /// The smallest pool of all ranks, in bytes.
    pub pool: Option<u64>,
    /// Tokens of the smallest rank.
    pub tokens: Option<u64>,
    /// Maximum concurrency, in hundredths.
    pub concurrency_hundredths: Option<u64>,
    /// Length that the concurrency is told for, in tokens.
    pub max_model_len: Option<u64>,
}
