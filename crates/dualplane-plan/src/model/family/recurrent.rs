//! Two stacks of layers that run in cycles (HRM): weights stand once, keys and values once for each run.

use super::{Context, decoder};
use crate::arith::mul;
use crate::model::layer::{Attention, FeedForward, Gqa, Layer};
use crate::outcome::PlanError;

/// Layers of both stacks, which have weights.
pub(crate) fn with_weights(per_stack: u64) -> u64 {
    per_stack.saturating_mul(2)
}

/// vLLM models/hrm_text.py: the fast stack runs `L_cycles` times in each of `H_cycles` runs of the slow one.
pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let per_stack = cx.need("num_layers_per_stack")?;
    let runs = mul([cx.keys.u64_or("H_cycles", 2), cx.keys.u64_or("L_cycles", 3).saturating_add(1)]);
    let all = mul([runs, per_stack]).clamp(1, crate::model::read::MAX_LAYERS as u64);
    let dense = FeedForward::Dense {
        intermediate: cx.need("intermediate_size")?,
        gated: true,
        bias: cx.bias_of(cx.traits.mlp_bias, &["mlp_bias"]),
    };
    let gqa = Gqa { kv_heads: cx.heads, ..decoder::attention(cx, 0) };
    let layer = |i| Layer {
        attention: Attention::Gqa(gqa),
        feed_forward: if i < with_weights(per_stack) { dense } else { FeedForward::None },
        norms: 0,
    };
    Ok((0..all).map(layer).collect())
}
