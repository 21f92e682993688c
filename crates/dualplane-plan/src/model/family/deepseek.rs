//! Latent attention: DeepSeek V2, V3, V3.2, Kimi K2, GLM-5; and the compressed attention of V4.

use super::{Context, decoder, missing};
use crate::model::layer::{Attention, CompressedMla, FeedForward, Indexer, Layer, Mla, Moe};
use crate::outcome::PlanError;

/// Latent attention as the config gives it, without a selector.
pub(super) fn mla(cx: &Context<'_>) -> Result<Mla, PlanError> {
    Ok(Mla {
        heads: cx.heads,
        q_lora_rank: cx.keys.u64_or("q_lora_rank", 0),
        kv_lora_rank: cx.need("kv_lora_rank")?,
        nope_dim: cx.need("qk_nope_head_dim")?,
        rope_dim: cx.need("qk_rope_head_dim")?,
        v_dim: cx.need("v_head_dim")?,
        indexer: None,
        output_gate: false,
    })
}

/// vLLM models/deepseek_v2.py, models/hy_v4: which layers select for themselves.
fn selects(cx: &Context<'_>, index: u64) -> bool {
    let listed = |l: &[serde_json::Value]| {
        usize::try_from(index).ok().and_then(|i| l.get(i)?.as_str().map(|k| k == "full"))
    };
    if cx.keys.str("model_type") == Some("hy_v4")
        && let Some(own) = cx.keys.list("indexer_types").and_then(|l| listed(l))
    {
        return own;
    }
    if let Some(pattern) = cx.keys.str("index_topk_pattern") {
        return usize::try_from(index).ok().and_then(|i| pattern.as_bytes().get(i)) != Some(&b'S');
    }
    let freq = cx.keys.u64_or("index_topk_freq", 1).max(1);
    let offset = cx.keys.u64_or("index_skip_topk_offset", 2);
    (index + 1).saturating_sub(offset).is_multiple_of(freq)
}

fn indexer(cx: &Context<'_>, index: u64) -> Option<Indexer> {
    Some(Indexer {
        heads: cx.keys.u64(&["index_n_heads"])?,
        head_dim: cx.keys.u64(&["index_head_dim"])?,
        top_k: cx.keys.u64(&["index_topk"])?,
        own: selects(cx, index),
    })
}

/// Routed and shared experts of this family.
pub(super) fn moe(cx: &Context<'_>) -> Result<Moe, PlanError> {
    let mut moe = decoder::experts(cx, &["moe_intermediate_size"])?;
    moe.shared_intermediate = moe
        .intermediate
        .saturating_mul(cx.keys.u64(&["n_shared_experts", "num_shared_experts"]).unwrap_or(0));
    moe.router_correction = cx.keys.str("topk_method") == Some("noaux_tc");
    Ok(moe)
}

fn feed_forward(cx: &Context<'_>, index: u64) -> Result<FeedForward, PlanError> {
    if decoder::is_sparse(cx, index) {
        return Ok(FeedForward::Moe(moe(cx)?));
    }
    Ok(FeedForward::Dense { intermediate: cx.need("intermediate_size")?, gated: true, bias: false })
}

pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let base = mla(cx)?;
    (0..cx.layers)
        .map(|i| {
            let attention = Attention::Mla(Mla { indexer: indexer(cx, i), ..base });
            Ok(Layer { attention, feed_forward: feed_forward(cx, i)?, norms: 2 })
        })
        .collect()
}

/// LongCat: each layer attends twice, with a dense network behind each and experts beside both (vLLM
/// models/longcat_flash.py).
pub(super) fn longcat(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let attention = Attention::Mla(mla(cx)?);
    let width = cx.need("ffn_hidden_size")?;
    let dense = FeedForward::Dense { intermediate: width, gated: true, bias: false };
    let mut moe = decoder::experts(cx, &["expert_ffn_hidden_size", "moe_intermediate_size"])?;
    moe.router_bytes = 4;
    moe.router_correction = true;
    moe.dense_beside = width;
    moe.zero_experts = cx.keys.u64_or("zero_expert_num", 0);
    let one = [
        Layer { attention, feed_forward: dense, norms: 2 },
        Layer { attention, feed_forward: FeedForward::Moe(moe), norms: 2 },
    ];
    Ok((0..cx.layers).flat_map(|_| one).collect())
}

/// MiniCPM-3: latent projections, a cache per head.
pub(super) fn expanded(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let attention = Attention::Expanded(mla(cx)?);
    (0..cx.layers).map(|i| Ok(Layer { attention, feed_forward: feed_forward(cx, i)?, norms: 2 })).collect()
}

/// DeepSeek-V4: `compress_ratios` gives each layer its compression.
pub(super) fn compressed(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let indexer = indexer(cx, 0).ok_or_else(|| missing("index_topk"))?;
    let base = CompressedMla {
        heads: cx.heads,
        head_dim: cx.need("head_dim")?,
        rope_dim: cx.need("qk_rope_head_dim")?,
        q_lora_rank: cx.need("q_lora_rank")?,
        o_lora_rank: cx.need("o_lora_rank")?,
        o_groups: cx.need("o_groups")?,
        window: cx.need("sliding_window")?,
        ratio: 0,
        indexer,
    };
    let hashed = cx.keys.u64_or("num_hash_layers", 0);
    let vocab = cx.need("vocab_size")?;
    (0..cx.layers)
        .map(|i| {
            let ratio = cx.per_layer("compress_ratios", i).ok_or_else(|| missing("compress_ratios"))?;
            if !matches!(ratio, 0 | 1 | 4 | 128) {
                return Err(PlanError::contradiction(
                    "config.json: compress_ratios",
                    format!("a ratio of {ratio}; the engine supports 4 and 128"),
                ));
            }
            let mut moe = moe(cx)?;
            if i < hashed {
                moe.router_correction = false;
                moe.hash_table_rows = vocab;
            }
            let attention =
                Attention::Compressed(CompressedMla { ratio: if ratio == 1 { 0 } else { ratio }, ..base });
            Ok(Layer { attention, feed_forward: FeedForward::Moe(moe), norms: 2 })
        })
        .collect()
}
