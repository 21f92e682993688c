//! Decoders with keys and values per head, dense or with experts, with windows where the config says so.

use serde_json::Value;

use super::{Context, Family, Shared, Windows, missing};
use crate::model::layer::{Attention, FeedForward, Gqa, Layer, Moe, Reach};
use crate::outcome::PlanError;

pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    if let Some(blocks) = cx.keys.list("block_configs") {
        return (0..cx.layers).zip(blocks).map(|(i, b)| block(cx, i, b)).collect();
    }
    (0..cx.layers)
        .map(|i| {
            Ok(Layer {
                attention: Attention::Gqa(attention(cx, i)),
                feed_forward: feed_forward(cx, i)?,
                norms: cx.traits.norms,
            })
        })
        .collect()
}

/// A layer of a model that was searched block by block: attention or feed-forward may be missing, and each block has its
/// own number of KV heads and its own width (vLLM models/nemotron_nas.py).
fn block(cx: &Context<'_>, index: u64, block: &Value) -> Result<Layer, PlanError> {
    let lacks = |part: &str| block.pointer(&format!("/{part}/no_op")).and_then(Value::as_bool) == Some(true);
    let number = |path: &str| block.pointer(path).and_then(crate::model::keys::number);
    let (no_attention, no_feed_forward) = (lacks("attention"), lacks("ffn"));
    let attention = if no_attention {
        Attention::None
    } else {
        let group = number("/attention/n_heads_in_group")
            .filter(|n| *n > 0)
            .ok_or_else(|| missing("n_heads_in_group"))?;
        let gqa = attention(cx, index);
        Attention::Gqa(Gqa { kv_heads: gqa.heads / group, ..gqa })
    };
    let multiple =
        || block.pointer("/ffn/ffn_mult").and_then(Value::as_f64).filter(|m| (0.0..1e6).contains(m));
    let feed_forward = if no_feed_forward {
        FeedForward::None
    } else {
        let width = match multiple() {
            // Two thirds of the multiple, rounded up to 256.
            Some(m) => ((2.0 * m * cx.hidden as f64 / 3.0) as u64).next_multiple_of(256),
            None => number("/ffn/intermediate_size").ok_or_else(|| missing("ffn_mult"))?,
        };
        let bias = cx.bias_of(cx.traits.mlp_bias, &["mlp_bias"]);
        FeedForward::Dense { intermediate: width, gated: cx.traits.gated, bias }
    };
    let norms = cx.traits.norms.saturating_sub(u64::from(no_attention) + u64::from(no_feed_forward));
    Ok(Layer { attention, feed_forward, norms })
}

/// The window that transformers' configuration class fills in where the config says nothing; `null` is none
/// (transformers models/mistral/configuration_mistral.py, qwen3_moe/configuration_qwen3_moe.py).
fn filled_in(cx: &Context<'_>) -> Option<u64> {
    let class = cx.keys.str("model_type");
    let fills = match class {
        Some("mistral" | "ministral") => true,
        Some("qwen3_moe") => cx.keys.bool("use_sliding_window") == Some(true),
        _ => false,
    };
    (fills && cx.keys.lacks("sliding_window")).then_some(4096)
}

/// The window of layer `index`, if it has one.
fn window(cx: &Context<'_>, index: u64) -> Reach {
    // Where both stand, MiMo's code reads its own.
    let window =
        cx.keys.u64(&["sliding_window_size", "sliding_window"]).filter(|w| *w > 0).or_else(|| filled_in(cx));
    // Read where there is no window too: without one they say nothing, and are no unknown keys.
    let slides = cx.keys.bool("use_sliding_window");
    let full_below = cx.keys.u64_or("max_window_layers", 0);
    let Some(window) = window else { return Reach::Full };
    if slides == Some(false) {
        return Reach::Full;
    }
    if cx.traits.windows == Windows::AllOrNone {
        let all = match cx.keys.list("layer_types") {
            Some(list) => list.iter().all(|k| k.as_str() == Some("sliding_attention")),
            None => full_below == 0,
        };
        return if all { Reach::Sliding(window) } else { Reach::Full };
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

/// Tokens of the short convolutions of a layer that keeps their inputs in pages (vLLM models/inkling/configs.py).
fn convolves(cx: &Context<'_>) -> u64 {
    let own = cx.keys.str("model_type").is_some_and(|kind| kind.starts_with("inkling"));
    let kernel = || cx.keys.u64(&["sconv_kernel_size", "conv_kernel_size"]).unwrap_or(4);
    if own { kernel() } else { 0 }
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
    // vLLM models/granite.py: where the layers are listed, unless `attention_sinks` says otherwise.
    if cx.architecture.starts_with("Granite") && cx.traits.family == Family::Decoder {
        sinks = cx.keys.bool("attention_sinks").unwrap_or_else(|| cx.keys.list("layer_types").is_some());
    }
    let mut gate_per_head = 0;
    if cx.architecture == "LagunaForCausalLM" {
        heads = cx.per_layer("num_attention_heads_per_layer", index).unwrap_or(heads);
        sinks = cx.keys.on("swa_attention_sink_enabled") && matches!(reach, Reach::Sliding(_));
        gate_per_head = match (cx.keys.bool("gating"), cx.keys.str("gating")) {
            (Some(false), _) => 0,
            (_, Some(word)) if word != "per-head" => head_dim,
            _ => 1,
        };
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
        output_gate: cx.output_gate(),
        gate_per_head,
        shares_kv: false,
        query_only: false,
        convolves: convolves(cx),
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
    "moe_k",
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
    // The older key decides where the engine's code of an architecture knows no other.
    let older = cx.traits.family == Family::Deepseek && cx.keys.u64(&["first_k_dense_replace"]).is_some();
    if !older
        && let Some(kind) = cx.keys.list("mlp_layer_types").and_then(|l| l.get(usize::try_from(index).ok()?))
    {
        return kind.as_str() == Some("sparse");
    }
    // Ernie 4.5: from one layer to another, every n-th.
    if let Some(interval) = cx.keys.u64(&["moe_layer_interval"]) {
        let first = cx.keys.u64_or("moe_layer_start_index", 0);
        let last = cx.keys.u64(&["moe_layer_end_index"]).unwrap_or(cx.layers);
        return (index + 1).is_multiple_of(interval.max(1)) && (first..=last).contains(&index);
    }
    if cx.keys.list("mlp_only_layers").is_some_and(|l| l.iter().any(|v| v.as_u64() == Some(index))) {
        return false;
    }
    let step = cx.keys.u64(&["decoder_sparse_step", "moe_layer_freq"]).unwrap_or(1).max(1);
    let first = cx.keys.u64(&["first_k_dense_replace", "num_dense_layers"]).unwrap_or(0);
    if cx.keys.u64(&["decoder_sparse_step"]).is_some() {
        return (index + 1).is_multiple_of(step);
    }
    index >= first && index.is_multiple_of(step)
}

/// Experts without anything special.
pub(super) fn experts(cx: &Context<'_>, width: &[&'static str]) -> Result<Moe, PlanError> {
    Ok(Moe {
        experts: cx.keys.u64(EXPERTS).unwrap_or(0),
        zero_experts: 0,
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

/// The spellings of the width of a feed-forward.
const WIDTHS: &[&str] = &["ffn_dim", "intermediate_size", "ffn_hidden_size", "n_inner"];

/// Width of a dense feed-forward; the oldest architectures say it only where it is not four times the model's.
fn width(cx: &Context<'_>) -> Result<u64, PlanError> {
    match cx.keys.u64(WIDTHS) {
        _ if cx.traits.mlp_four_times => Ok(cx.hidden.saturating_mul(4)),
        Some(n) => Ok(n),
        None if !cx.traits.gated => Ok(cx.hidden.saturating_mul(4)),
        None => Err(missing("intermediate_size")),
    }
}

/// Width of the experts that see every token, and whether they stand behind a gate.
fn shared(cx: &Context<'_>, of_one: u64) -> (u64, bool) {
    let count = || cx.keys.u64(&["n_shared_experts", "num_shared_experts", "moe_num_shared_experts"]);
    let own = || cx.keys.u64(&["shared_expert_intermediate_size", "shared_intermediate_size"]).unwrap_or(0);
    match cx.traits.shared {
        Shared::None => (0, false),
        Shared::Count => (of_one.saturating_mul(count().unwrap_or(0)), false),
        Shared::One => (of_one, false),
        Shared::Width => (own(), false),
        Shared::Gated => (own(), own() > 0),
    }
}

fn feed_forward(cx: &Context<'_>, index: u64) -> Result<FeedForward, PlanError> {
    if !is_sparse(cx, index) {
        return Ok(FeedForward::Dense {
            intermediate: width(cx)?,
            gated: cx.traits.gated,
            bias: cx.bias_of(cx.traits.mlp_bias, &["mlp_bias"]),
        });
    }
    let mut moe = experts(cx, &["moe_intermediate_size", "intermediate_size", "ffn_hidden_size"])?;
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
        "Glm4MoeForCausalLM" | "BeamForCausalLM" => {
            moe.router_correction = true;
            moe.router_bytes = 4;
        }
        "LagunaForCausalLM" => moe.router_correction = true,
        _ => {}
    }
    (moe.shared_intermediate, moe.shared_gate) = shared(cx, moe.intermediate);
    Ok(FeedForward::Moe(moe))
}

#[cfg(test)]
mod tests {
    use crate::model::{Attention, Model, ModelFiles};

    /// Blocks as the searched models have them: with attention, without, and without a feed-forward.
    #[test]
    fn blocks_that_were_searched_have_their_own_heads_and_widths() {
        let config = r#"{"architectures": ["DeciLMForCausalLM"], "model_type": "nemotron-nas", "hidden_size": 8192,
            "intermediate_size": null, "num_attention_heads": 64, "num_key_value_heads": null, "num_hidden_layers": 3,
            "vocab_size": 1024, "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "block_configs": [
            {"attention": {"n_heads_in_group": 8, "no_op": false}, "ffn": {"ffn_mult": 2.625, "no_op": false}},
            {"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": 0.5, "no_op": false}},
            {"attention": {"n_heads_in_group": 16, "no_op": false}, "ffn": {"ffn_mult": null, "no_op": true}}]}"#;
        let model = Model::read(&ModelFiles { config, ..ModelFiles::default() }).unwrap();
        let kv = |i: usize| match model.layers[i].attention {
            Attention::Gqa(g) => g.kv_heads,
            _ => 0,
        };
        assert_eq!([kv(0), kv(1), kv(2)], [8, 0, 4]);
        assert_eq!([0, 1, 2].map(|i| model.layers[i].norms), [2, 1, 1]);
        let width = |i: usize| match model.layers[i].feed_forward {
            crate::model::FeedForward::Dense { intermediate, .. } => intermediate,
            _ => 0,
        };
        assert_eq!([width(0), width(1), width(2)], [14336, 2816, 0]);
    }
}
