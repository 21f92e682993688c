//! What SGLang settles once the free memory is measured: for comparison with the engine's own code.

use super::around::encoder;
use super::defaults;
use super::pool::{Cut, Memory};
use super::read::Read;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::Model;
use crate::outcome::{PlanError, Refusal};
use crate::quantity::Quantity;

/// What a start measures.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Size of the card as the driver prints it, in MiB.
    pub driver_mib: u64,
    /// Free before the weights are loaded, in bytes.
    pub before: u64,
    /// Free after, in bytes.
    pub after: u64,
}

/// What follows from flags, configuration and free memory.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Tensors of the first rank, in bytes, without what the allocator rounds.
    pub weights: Quantity,
    /// Static share.
    pub share: f64,
    /// Tokens of a prompt that one step takes; `None`: prompts are not cut.
    pub chunk: Option<u64>,
    /// Tokens of a page.
    pub page: u64,
    /// Longest request, in tokens.
    pub context: u64,
    /// Dtype of the cache.
    pub kv_dtype: String,
    /// Bytes of a token in all pools.
    pub cell: f64,
    /// Tokens.
    pub tokens: u64,
    /// Tokens of the windows' pool.
    pub window_tokens: u64,
    /// Slots for states.
    pub states: u64,
    /// Bytes of one state.
    pub state_bytes: u64,
    /// Requests at once.
    pub requests: u64,
    /// Why there is no pool.
    pub refusal: Option<Refusal>,
}

/// Sizes the pools of the first pipeline stage.
///
/// # Errors
/// As [`crate::plan`].
pub fn sizes(model: &Model, launch: &Launch, gpu: &Gpu, m: &Measured) -> Result<Sizes, PlanError> {
    let read = Read::new(model, launch, gpu)?;
    let share = defaults::share(model, launch, Quantity::exact(m.driver_mib)).expected;
    let (cells, states) = (read.cells.clone()?, read.states.clone()?);
    let chunk = defaults::chunk_of_group(launch, m.driver_mib);
    let pool = read.pool(launch, &cells, states, chunk);
    let memory = Memory {
        before: m.before as f64,
        after: m.after as f64,
        share,
        encoder: encoder(model, launch, gpu).expected as f64,
    };
    let Cut { tokens, window_tokens, states, requests, refusal, .. } = pool.cut(&memory);
    let ratio = launch.sglang.swa_full_tokens_ratio.unwrap_or(0.8);
    let stage = read.shapes.stages.first();
    Ok(Sizes {
        weights: Quantity::within(
            stage.map_or(0, |s| s.total().saturating_sub(s.rounding)),
            read.shapes.band,
        ),
        share,
        chunk,
        page: pool.page,
        context: pool.context,
        kv_dtype: read.kv_dtype.clone(),
        cell: cells.first().map_or(0.0, |c| c.bytes(ratio)),
        tokens,
        window_tokens,
        states,
        state_bytes: pool.states.map_or(0, |s| s.each),
        requests,
        refusal,
    })
}
