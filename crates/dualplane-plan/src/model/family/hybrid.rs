//! Hybrids: states of fixed size beside attention (Qwen3-Next and Qwen3.5, Nemotron-H, Kimi Linear).

use super::{Context, decoder, deepseek, missing};
use crate::arith::mul;
use crate::model::layer::{Attention, FeedForward, GatedDelta, Gqa, Kda, Layer, Mamba2, Mla};
use crate::outcome::PlanError;

/// Gated DeltaNet on most layers, gated attention on every fourth or as listed.
pub(super) fn qwen(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let delta = GatedDelta {
        k_heads: cx.need("linear_num_key_heads")?,
        v_heads: cx.need("linear_num_value_heads")?,
        k_dim: cx.need("linear_key_head_dim")?,
        v_dim: cx.need("linear_value_head_dim")?,
        conv: cx.need("linear_conv_kernel_dim")?,
    };
    let every = cx.keys.u64_or("full_attention_interval", 4).max(1);
    (0..cx.layers)
        .map(|i| {
            let full = match cx.layer_type(i) {
                Some(kind) => kind == "full_attention",
                None => (i + 1).is_multiple_of(every),
            };
            let attention =
                if full { Attention::Gqa(decoder::attention(cx, i)) } else { Attention::GatedDelta(delta) };
            let feed_forward = if decoder::is_sparse(cx, i) {
                let mut moe = decoder::experts(cx, &["moe_intermediate_size"])?;
                moe.shared_intermediate = cx.keys.u64_or("shared_expert_intermediate_size", 0);
                moe.shared_gate = moe.shared_intermediate > 0;
                FeedForward::Moe(moe)
            } else {
                FeedForward::Dense { intermediate: cx.need("intermediate_size")?, gated: true, bias: false }
            };
            Ok(Layer { attention, feed_forward, norms: 2 })
        })
        .collect()
}

/// One letter a layer: `M` Mamba-2, `*` attention, `-` dense, `E` experts.
pub(super) fn nemotron(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let kinds: Vec<char> = match (cx.keys.str("hybrid_override_pattern"), cx.keys.list("layers_block_type")) {
        (Some(pattern), _) => pattern.chars().filter(|c| *c != '|').collect(),
        (None, Some(list)) => list
            .iter()
            .map(|v| match v.as_str() {
                Some("mamba" | "mamba2" | "linear_attention") => 'M',
                Some("attention" | "full_attention") => '*',
                Some("moe") => 'E',
                _ => '-',
            })
            .collect(),
        (None, None) => return Err(missing("hybrid_override_pattern")),
    };
    kinds.into_iter().take(super::super::read::MAX_LAYERS).map(|kind| nemotron_layer(cx, kind)).collect()
}

fn nemotron_layer(cx: &Context<'_>, kind: char) -> Result<Layer, PlanError> {
    let mut layer = Layer { attention: Attention::None, feed_forward: FeedForward::None, norms: 1 };
    match kind {
        'M' => {
            let (heads, head_dim) = (cx.need("mamba_num_heads")?, cx.need("mamba_head_dim")?);
            layer.attention = Attention::Mamba2(Mamba2 {
                inner: mul([heads, head_dim]),
                heads,
                head_dim,
                groups: cx.need("n_groups")?,
                state: cx.need("ssm_state_size")?,
                conv: cx.need("conv_kernel")?,
                chunk: cx.keys.u64_or("chunk_size", 256),
                bias: cx.keys.on("use_bias") || cx.keys.on("mamba_proj_bias"),
                conv_bias: cx.keys.bool("use_conv_bias") != Some(false),
            });
        }
        '*' => {
            let head_dim = cx.keys.u64(&["head_dim", "attention_head_dim"]).unwrap_or_else(|| cx.head_dim());
            let gqa = decoder::attention(cx, 0);
            layer.attention = Attention::Gqa(Gqa {
                head_dim,
                v_head_dim: head_dim,
                reach: crate::model::layer::Reach::Full,
                ..gqa
            });
        }
        '-' => {
            let bias = cx.keys.on("mlp_bias");
            layer.feed_forward =
                FeedForward::Dense { intermediate: cx.need("intermediate_size")?, gated: false, bias };
        }
        'E' => {
            let mut moe = decoder::experts(cx, &["moe_intermediate_size"])?;
            moe.gated = false;
            moe.latent = cx.keys.u64(&["moe_latent_size"]);
            moe.router_correction = true;
            moe.shared_intermediate = cx
                .keys
                .u64_or("moe_shared_expert_intermediate_size", 0)
                .saturating_mul(cx.keys.u64_or("n_shared_experts", 0));
            layer.feed_forward = FeedForward::Moe(moe);
        }
        other => {
            return Err(PlanError::Unsupported {
                what: format!("layer kind {other:?} in hybrid_override_pattern"),
            });
        }
    }
    Ok(layer)
}

/// KDA on the layers of `linear_attn_config.kda_layers` (counted from one), MLA on the others.
pub(super) fn kimi(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let linear = cx.keys.object("linear_attn_config").ok_or_else(|| missing("linear_attn_config"))?;
    let keys = super::super::keys::Keys::new(linear);
    let kda = Kda {
        heads: keys.u64(&["num_heads"]).ok_or_else(|| missing("linear_attn_config.num_heads"))?,
        head_dim: keys.u64(&["head_dim"]).ok_or_else(|| missing("linear_attn_config.head_dim"))?,
        conv: keys.u64(&["short_conv_kernel_size"]).unwrap_or(4),
        full_rank_gate: keys.on("use_full_rank_gate"),
        bounded: keys.get(&["gate_lower_bound"]).is_some(),
    };
    let is_kda =
        |i: u64| keys.list("kda_layers").is_some_and(|l| l.iter().any(|v| v.as_u64() == Some(i + 1)));
    let mla = Mla { output_gate: cx.keys.on("mla_use_output_gate"), ..deepseek::mla(cx)? };
    (0..cx.layers)
        .map(|i| {
            let attention = if is_kda(i) { Attention::Kda(kda) } else { Attention::Mla(mla) };
            let feed_forward = if decoder::is_sparse(cx, i) {
                let mut moe = deepseek::moe(cx)?;
                moe.latent = cx.keys.u64(&["routed_expert_hidden_size"]).filter(|h| *h != cx.hidden);
                moe.router_correction = true;
                FeedForward::Moe(moe)
            } else {
                FeedForward::Dense { intermediate: cx.need("intermediate_size")?, gated: true, bias: false }
            };
            Ok(Layer { attention, feed_forward, norms: 2 })
        })
        .collect()
}
