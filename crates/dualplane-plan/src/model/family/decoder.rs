//! Decoders with keys and values per head, dense or with experts, with windows where the config says so.

use super::{Context, Family, missing};
use crate::model::layer::{Attention, FeedForward, Gqa, Layer, Moe, Reach};
use crate::outcome::PlanError;

pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    (0..cx.layers)
        .map(|i| {
            Ok(Layer {
                attention: Attention::Gqa(attention(cx, i)),
                feed_forward: feed_forward(cx, i)?,
                norms: 2,
            })
        })
        .collect()
}

/// The window of layer `index`, if it has one.
fn window(cx: &Context<'_>, index: u64) -> Reach {
    let window = cx.keys.u64(&["sliding_window", "sliding_window_size"]).filter(|w| *w > 0);
    // Read where there is no window too: without one they say nothing, and are no unknown keys.
    let slides = cx.keys.bool("use_sliding_window");
    let full_below = cx.keys.u64_or("max_window_layers", 0);
    let Some(window) = window else { return Reach::Full };
    if slides == Some(false) {
        return Reach::Full;
    }
    let slides = match cx.traits.family {
        Family::MimoV2 => cx.per_layer("hybrid_layer_pattern", index) == Some(1),
        _ => match cx.layer_type(index) {
            Some(kind) => kind == "sliding_attention",
            // vLLM models/gpt_oss.py: without a list every second layer slides.
            None if cx.traits.family == Family::GptOss => index.is_multiple_of(2),
            // Qwen2's `max_window_layers` counts the full layers at the bottom.
            None => index >= full_below,
        },
    };
    if slides { Reach::Sliding(window) } else { Reach::Full }
}

/// Attention of layer `index`.
pub(super) fn attention(cx: &Context<'_>, index: u64) -> Gqa {
    let reach = window(cx, index);
    let (mut heads, mut kv_heads, mut head_dim) = (cx.heads, cx.kv_heads, cx.head_dim());
    let mut v_head_dim = head_dim;
    let mut sinks = cx.traits.family == Family::GptOss;
    if cx.traits.family == Family::MimoV2 {
        v_head_dim = cx.keys.u64_or("v_head_dim", head_dim);
        sinks = cx.keys.on("add_full_attention_sink_bias");
        if matches!(reach, Reach::Sliding(_)) {
            heads = cx.keys.u64_or("swa_num_attention_heads", heads);
            kv_heads = cx.keys.u64_or("swa_num_key_value_heads", kv_heads);
            head_dim = cx.keys.u64_or("swa_head_dim", head_dim);
            v_head_dim = cx.keys.u64_or("swa_v_head_dim", v_head_dim);
            sinks = cx.keys.on("add_swa_attention_sink_bias");
        }
    }
    // GLM-4.5 and MiniMax-M2 say in the config whether they norm q and k.
    let qk_norm = match (cx.traits.qk_norm, cx.keys.bool("use_qk_norm"), cx.architecture) {
        (norm, Some(false), "MiniMaxM2ForCausalLM") => {
            let _ = norm;
            crate::model::layer::QkNorm::None
        }
        (_, Some(true), "Glm4MoeForCausalLM") => crate::model::layer::QkNorm::PerHead,
        (norm, ..) => norm,
    };
    Gqa {
        heads,
        kv_heads,
        head_dim,
        v_head_dim,
        reach,
        qkv_bias: cx.bias(cx.traits.qkv_bias),
        o_bias: cx.bias(cx.traits.o_bias),
        qk_norm,
        sinks,
        output_gate: false,
        shares_kv: false,
        k_is_v: false,
    }
}

/// The spellings of the number of routed experts.
pub(super) const EXPERTS: &[&str] =
    &["num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts"];
/// The spellings of the number of experts per token.
pub(super) const TOP_K: &[&str] = &[
    "num_experts_per_tok",
    "num_experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_top_k",
    "experts_per_token",
];

/// Whether layer `index` has experts.
pub(super) fn is_sparse(cx: &Context<'_>, index: u64) -> bool {
    if cx.keys.u64(EXPERTS).unwrap_or(0) == 0 {
        return false;
    }
    if let Some(pattern) = cx.keys.list("moe_layer_freq") {
        let _ = pattern;
        return cx.per_layer("moe_layer_freq", index) == Some(1);
    }
    if cx.keys.list("mlp_only_layers").is_some_and(|l| l.iter().any(|v| v.as_u64() == Some(index))) {
        return false;
    }
    let step = cx.keys.u64(&["decoder_sparse_step", "moe_layer_freq"]).unwrap_or(1).max(1);
    let first = cx.keys.u64(&["first_k_dense_replace"]).unwrap_or(0);
    if cx.keys.u64(&["decoder_sparse_step"]).is_some() {
        return (index + 1).is_multiple_of(step);
    }
    index >= first && index.is_multiple_of(step)
}

/// Experts without anything special.
pub(super) fn experts(cx: &Context<'_>, width: &[&'static str]) -> Result<Moe, PlanError> {
    Ok(Moe {
        experts: cx.keys.u64(EXPERTS).unwrap_or(0),
        top_k: cx.keys.u64(TOP_K).unwrap_or(1),
        intermediate: cx.keys.u64(width).ok_or_else(|| missing("moe_intermediate_size"))?,
        latent: None,
        gated: true,
        bias: false,
        shared_intermediate: 0,
        shared_gate: false,
        router_correction: false,
        correction_bytes: 4,
        router_bias: false,
        router_bytes: 0,
        hash_table_rows: 0,
        dense_beside: 0,
    })
}

fn feed_forward(cx: &Context<'_>, index: u64) -> Result<FeedForward, PlanError> {
    if cx.traits.family == Family::Opt {
        let intermediate =
            cx.keys.u64(&["ffn_dim", "intermediate_size"]).ok_or_else(|| missing("ffn_dim"))?;
        return Ok(FeedForward::Dense { intermediate, gated: false, bias: true });
    }
    if !is_sparse(cx, index) {
        let intermediate = cx.need("intermediate_size")?;
        return Ok(FeedForward::Dense { intermediate, gated: true, bias: cx.keys.on("mlp_bias") });
    }
    let mut moe = experts(cx, &["moe_intermediate_size", "intermediate_size"])?;
    match cx.architecture {
        "GptOssForCausalLM" => {
            moe.bias = true;
            moe.router_bias = true;
        }
        "MiniMaxM2ForCausalLM" => {
            moe.router_correction = cx.keys.on("use_routing_bias");
            moe.router_bytes = 4;
        }
        "MiMoV2FlashForCausalLM" | "MiMoV2ForCausalLM" => {
            moe.router_correction = cx.keys.str("topk_method") == Some("noaux_tc");
            moe.router_bytes = 4;
        }
        "Glm4MoeForCausalLM" => {
            moe.router_correction = true;
            moe.router_bytes = 4;
            moe.shared_intermediate = moe.intermediate.saturating_mul(cx.keys.u64_or("n_shared_experts", 0));
        }
        "Qwen2MoeForCausalLM" => {
            moe.shared_intermediate = cx.keys.u64_or("shared_expert_intermediate_size", 0);
            moe.shared_gate = moe.shared_intermediate > 0;
        }
        _ => {}
    }
    Ok(FeedForward::Moe(moe))
}
