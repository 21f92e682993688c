//! Gemma: windows on most layers, four norms a layer; Gemma 4 with heads of another shape on the full layers.

use super::{Context, Family, decoder};
use crate::model::layer::{Attention, FeedForward, Gqa, Layer, Reach};
use crate::outcome::PlanError;

pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let window = cx.keys.u64(&["sliding_window"]).filter(|w| *w > 0);
    let pattern = cx
        .keys
        .u64(&["sliding_window_pattern", "_sliding_window_pattern"])
        .unwrap_or(if cx.architecture.starts_with("Gemma2") { 2 } else { 6 });
    let shared = cx.keys.u64_or("num_kv_shared_layers", 0);
    (0..cx.layers)
        .map(|i| {
            // transformers' Gemma4TextConfig makes the last layer a full one, whatever the list says.
            let last = cx.traits.family == Family::Gemma4 && i + 1 == cx.layers;
            let full = last
                || match cx.layer_type(i) {
                    Some(kind) => kind == "full_attention",
                    None => (i + 1).is_multiple_of(pattern.max(1)),
                };
            let mut gqa = Gqa { reach: Reach::Full, ..decoder::attention(cx, i) };
            if !full && let Some(window) = window {
                gqa.reach = Reach::Sliding(window);
            }
            gqa.shares_kv = i >= cx.layers.saturating_sub(shared);
            if cx.traits.family == Family::Gemma4 && full {
                gqa.head_dim = cx.keys.u64(&["global_head_dim"]).unwrap_or(gqa.head_dim);
                gqa.v_head_dim = gqa.head_dim;
                if cx.keys.on("attention_k_eq_v") {
                    gqa.k_is_v = true;
                    gqa.kv_heads = cx.keys.u64(&["num_global_key_value_heads"]).unwrap_or(gqa.kv_heads);
                }
            }
            let wide = if gqa.shares_kv && cx.keys.on("use_double_wide_mlp") { 2 } else { 1 };
            let intermediate = cx.need("intermediate_size")?.saturating_mul(wide);
            let experts = cx.keys.u64(decoder::EXPERTS).unwrap_or(0);
            let (feed_forward, norms) = if cx.traits.family == Family::Gemma4 && experts > 0 {
                let mut moe = decoder::experts(cx, &["moe_intermediate_size", "expert_intermediate_size"])?;
                moe.dense_beside = intermediate;
                (FeedForward::Moe(moe), 7)
            } else {
                (FeedForward::Dense { intermediate, gated: true, bias: false }, 4)
            };
            Ok(Layer { attention: Attention::Gqa(gqa), feed_forward, norms })
        })
        .collect()
}
