//! Llama 4: chunked attention on three of four layers, experts on every n-th.

use super::{Context, decoder};
use crate::model::layer::{Attention, FeedForward, Gqa, Layer, Reach};
use crate::outcome::PlanError;

pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let chunk = cx.keys.u64_or("attention_chunk_size", 0);
    let step = cx.keys.u64_or("interleave_moe_layer_step", 1);
    (0..cx.layers)
        .map(|i| {
            let local = match cx.layer_type(i) {
                Some(kind) => kind == "chunked_attention",
                None => match cx.per_layer("no_rope_layers", i) {
                    Some(rope) => rope != 0,
                    // transformers' Llama4TextConfig: every fourth layer has no rotation and sees everything.
                    None => !(i + 1).is_multiple_of(4),
                },
            };
            let reach = if local && chunk > 0 { Reach::Chunked(chunk) } else { Reach::Full };
            let attention = Attention::Gqa(Gqa { reach, ..decoder::attention(cx, i) });
            let sparse = step > 0 && (i + 1).is_multiple_of(step);
            let feed_forward = if sparse {
                let mut moe = decoder::experts(cx, &["intermediate_size"])?;
                moe.shared_intermediate = moe.intermediate;
                FeedForward::Moe(moe)
            } else {
                FeedForward::Dense {
                    intermediate: cx.need("intermediate_size_mlp")?,
                    gated: true,
                    bias: false,
                }
            };
            Ok(Layer { attention, feed_forward, norms: 2 })
        })
        .collect()
}
