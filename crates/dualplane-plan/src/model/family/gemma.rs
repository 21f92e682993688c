//! Gemma: windows on most layers, four norms a layer; Gemma 4 with heads of another shape on the full layers.

use super::{Context, Family, decoder};
use crate::model::keys::number;
use crate::model::layer::{Attention, FeedForward, Gqa, Layer, Reach};
use crate::outcome::PlanError;

/// Gives layer `index` the heads that transformers' class of Gemma 4 gives it (configuration_gemma4.py): where the config
/// says them layer by layer, a layer that is not named has those of the config; where it does not, full layers have wider
/// ones.
fn own_heads(cx: &Context<'_>, index: u64, full: bool, gqa: &mut Gqa) {
    // vLLM models/diffusion_gemma.py sets it, whatever the config says.
    let said = cx.keys.on("attention_k_eq_v") || cx.architecture.starts_with("DiffusionGemma");
    gqa.k_is_v = full && said;
    let (head_dim, kv_heads) = match cx.keys.object("per_layer_config") {
        Some(layers) => {
            // Numbers are padded with zeros to one width.
            let named = |(key, _): &(&String, _)| key.parse() == Ok(index);
            let own = layers.as_object().and_then(|l| l.iter().find(named)).map(|(_, v)| v);
            let of = |key: &str| number(own?.get(key)?);
            (of("head_dim"), of("num_key_value_heads"))
        }
        None if full => (
            Some(cx.keys.u64(&["global_head_dim"]).unwrap_or(512)),
            cx.keys.u64(&["num_global_key_value_heads"]).filter(|_| gqa.k_is_v),
        ),
        None => (None, None),
    };
    gqa.head_dim = head_dim.unwrap_or(gqa.head_dim);
    gqa.v_head_dim = gqa.head_dim;
    gqa.kv_heads = kv_heads.unwrap_or(gqa.kv_heads);
}

pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let window = cx.keys.u64(&["sliding_window"]).filter(|w| *w > 0);
    let pattern = cx
        .keys
        .u64(&["sliding_window_pattern", "_sliding_window_pattern"])
        .unwrap_or(if cx.architecture.starts_with("Gemma2") { 2 } else { 6 });
    // More than there are layers share nothing (vLLM models/gemma3n.py).
    let said = cx.keys.u64(&["num_kv_shared_layers"]).unwrap_or(0);
    let shared = if said < cx.layers { said } else { 0 };
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
            // The layer whose cache it shares lies one or, for a window, two before the first that shares.
            let first = cx.layers.saturating_sub(shared);
            let back = if cx.architecture.starts_with("Gemma3n") && !full { 2 } else { 1 };
            gqa.shares_kv = i >= first && first >= back;
            // Which layers project nothing but queries is counted without that (vLLM models/gemma3n.py).
            gqa.query_only = cx.architecture.starts_with("Gemma3n") && i.saturating_add(said) >= cx.layers;
            if cx.traits.family == Family::Gemma4 {
                own_heads(cx, i, full, &mut gqa);
            }
            let wide = if gqa.shares_kv && cx.keys.on("use_double_wide_mlp") { 2 } else { 1 };
            // Gemma 3n lists a width for each layer.
            let listed = cx.per_layer("intermediate_size", i);
            let intermediate = listed.map_or_else(|| cx.need("intermediate_size"), Ok)?.saturating_mul(wide);
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
