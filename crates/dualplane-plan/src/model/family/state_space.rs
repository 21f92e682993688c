//! State spaces, alone (Mamba, Mamba-2) and with attention (Jamba, Granite 4, Falcon-H1, LFM2).

use super::{Context, Family, decoder, missing};
use crate::arith::{ceil_div, floor_div, mul, round_up};
use crate::model::layer::{Attention, FeedForward, Gqa, Layer, Mamba1, Mamba2, Moe, ShortConv};
use crate::outcome::PlanError;

pub(super) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let mut out = Vec::new();
    for i in 0..cx.layers {
        match cx.architecture {
            "JambaForCausalLM" => out.push(jamba(cx, i)?),
            "GraniteMoeHybridForCausalLM" => out.push(granite(cx, i)?),
            "Lfm2ForCausalLM" => out.push(lfm2(cx, i)?),
            // Both in each layer, side by side: as a layer with a state and one with the rest.
            "FalconH1ForCausalLM" => {
                let none = FeedForward::None;
                out.push(Layer { attention: Attention::Mamba2(mamba2(cx)?), feed_forward: none, norms: 0 });
                out.push(attended(cx, i)?);
            }
            "Mamba2ForCausalLM" => out.push(alone(Attention::Mamba2(mamba2(cx)?))),
            _ => out.push(alone(Attention::Mamba1(mamba1(cx)?))),
        }
    }
    Ok(out)
}

fn alone(attention: Attention) -> Layer {
    Layer { attention, feed_forward: FeedForward::None, norms: 1 }
}

/// A layer with attention and a dense feed-forward.
fn attended(cx: &Context<'_>, index: u64) -> Result<Layer, PlanError> {
    let feed_forward =
        FeedForward::Dense { intermediate: cx.need("intermediate_size")?, gated: true, bias: false };
    Ok(Layer { attention: Attention::Gqa(decoder::attention(cx, index)), feed_forward, norms: 2 })
}

fn mamba1(cx: &Context<'_>) -> Result<Mamba1, PlanError> {
    let expand = cx.keys.u64(&["expand", "mamba_expand"]).unwrap_or(2);
    let own = cx.keys.u64(&["intermediate_size"]).filter(|_| cx.architecture != "JambaForCausalLM");
    Ok(Mamba1 {
        inner: own.unwrap_or_else(|| mul([expand, cx.hidden])),
        state: cx.keys.u64(&["state_size", "mamba_d_state"]).ok_or_else(|| missing("state_size"))?,
        conv: cx.keys.u64(&["conv_kernel", "mamba_d_conv"]).unwrap_or(4),
        // transformers' "auto" is a sixteenth of the width.
        dt_rank: cx.keys.u64(&["time_step_rank", "mamba_dt_rank"]).unwrap_or_else(|| ceil_div(cx.hidden, 16)),
        conv_bias: true,
    })
}

fn mamba2(cx: &Context<'_>) -> Result<Mamba2, PlanError> {
    let get = |names: &[&'static str]| cx.keys.u64(names);
    let expand = get(&["expand", "mamba_expand"]).unwrap_or(2);
    let heads =
        get(&["mamba_n_heads", "n_mamba_heads", "num_heads"]).ok_or_else(|| missing("mamba_n_heads"))?;
    let inner = get(&["mamba_d_ssm"]).unwrap_or_else(|| mul([expand, cx.hidden]));
    // vLLM models/zamba2.py cuts the width into its heads, whatever `mamba_headdim` says.
    let told = get(&["mamba_d_head", "head_dim"]).filter(|_| cx.traits.family != Family::Zamba);
    Ok(Mamba2 {
        inner,
        heads,
        head_dim: told.unwrap_or_else(|| floor_div(inner, heads)),
        groups: get(&["mamba_n_groups", "mamba_ngroups", "n_groups"]).unwrap_or(1),
        state: get(&["mamba_d_state", "state_size"]).ok_or_else(|| missing("state_size"))?,
        conv: get(&["mamba_d_conv", "conv_kernel"]).unwrap_or(4),
        chunk: get(&["mamba_chunk_size", "chunk_size"]).unwrap_or(256),
        bias: cx.keys.on("mamba_proj_bias") || cx.keys.on("use_bias"),
        conv_bias: true,
    })
}

/// Mamba-2 everywhere, and before some of the layers a block of attention, whose weights are shared.
pub(super) fn zamba(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    let listed = cx.keys.list("hybrid_layer_ids");
    let hybrid = |i: u64| match listed {
        Some(list) => list.iter().any(|v| v.as_u64() == Some(i)),
        None => {
            let kinds = cx.keys.list("layers_block_type");
            let kind = kinds.and_then(|k| k.get(usize::try_from(i).ok()?)?.as_str());
            kind == Some("hybrid")
        }
    };
    let none = FeedForward::None;
    let state = Layer { attention: Attention::Mamba2(mamba2(cx)?), feed_forward: none, norms: 1 };
    let head_dim =
        cx.keys.u64(&["attention_head_dim"]).unwrap_or_else(|| floor_div(mul([2, cx.hidden]), cx.heads));
    // vLLM models/zamba2.py gives its layers as many KV heads as heads, whatever the config says.
    let gqa = Gqa { head_dim, v_head_dim: head_dim, kv_heads: cx.heads, ..decoder::attention(cx, 0) };
    let mut out = Vec::new();
    for i in 0..cx.layers {
        if hybrid(i) {
            out.push(Layer { attention: Attention::Gqa(gqa), feed_forward: none, norms: 2 });
        }
        out.push(state);
    }
    Ok(out)
}

/// Attention on every eighth layer, experts on every second, or as the config says.
fn jamba(cx: &Context<'_>, i: u64) -> Result<Layer, PlanError> {
    let on = |period: &'static str, offset: &'static str, default: (u64, u64)| {
        let period = cx.keys.u64_or(period, default.0).max(1);
        i % period == cx.keys.u64_or(offset, default.1)
    };
    let attention = if on("attn_layer_period", "attn_layer_offset", (8, 4)) {
        Attention::Gqa(decoder::attention(cx, i))
    } else {
        Attention::Mamba1(mamba1(cx)?)
    };
    let several = cx.keys.u64_or("num_experts", 16) > 1;
    let feed_forward = if several && on("expert_layer_period", "expert_layer_offset", (2, 1)) {
        FeedForward::Moe(decoder::experts(cx, &["intermediate_size"])?)
    } else {
        FeedForward::Dense { intermediate: cx.need("intermediate_size")?, gated: true, bias: false }
    };
    Ok(Layer { attention, feed_forward, norms: 2 })
}

/// A shared network on each layer, and experts where there are any.
fn granite(cx: &Context<'_>, i: u64) -> Result<Layer, PlanError> {
    let attends = matches!(cx.layer_type(i), Some("attention" | "full_attention"));
    let attention =
        if attends { Attention::Gqa(decoder::attention(cx, i)) } else { Attention::Mamba2(mamba2(cx)?) };
    let shared = cx.keys.u64_or("shared_intermediate_size", 0);
    let feed_forward = if cx.keys.u64_or("num_local_experts", 0) > 0 {
        let moe = decoder::experts(cx, &["intermediate_size"])?;
        FeedForward::Moe(Moe { shared_intermediate: shared, ..moe })
    } else {
        FeedForward::Dense { intermediate: shared, gated: true, bias: false }
    };
    Ok(Layer { attention, feed_forward, norms: 2 })
}

/// Short convolutions, and attention where the config lists it.
fn lfm2(cx: &Context<'_>, i: u64) -> Result<Layer, PlanError> {
    // vLLM models/lfm2.py builds some of a layer by one and some by the other, and adds up what both give: with two widths its
    // first step fails.
    if let Some(d) = cx.keys.u64(&["block_dim"]).filter(|d| *d != cx.hidden) {
        let why = format!("{d} is not the hidden_size of {}, and the engine adds vectors of both", cx.hidden);
        return Err(PlanError::contradiction("config.json: block_dim", why));
    }
    let attends = cx.layer_type(i) == Some("full_attention");
    let attention = if attends {
        Attention::Gqa(decoder::attention(cx, i))
    } else {
        let width = cx.keys.u64(&["conv_dim"]).unwrap_or(cx.hidden);
        Attention::ShortConv(ShortConv { width, conv: cx.keys.u64_or("conv_L_cache", 3) })
    };
    let feed_forward = if cx.keys.u64_or("num_experts", 0) > 0 && i >= cx.keys.u64_or("num_dense_layers", 0) {
        let mut moe = decoder::experts(cx, &["moe_intermediate_size"])?;
        moe.router_correction = cx.keys.on("use_expert_bias");
        FeedForward::Moe(moe)
    } else {
        FeedForward::Dense { intermediate: adjusted(cx)?, gated: true, bias: false }
    };
    Ok(Layer { attention, feed_forward, norms: 2 })
}

/// Two thirds of the width that the config says, in whole blocks (vLLM models/lfm2.py `Lfm2MLP`).
fn adjusted(cx: &Context<'_>) -> Result<u64, PlanError> {
    let width =
        cx.keys.u64(&["block_ff_dim", "intermediate_size"]).ok_or_else(|| missing("intermediate_size"))?;
    if cx.keys.bool("block_auto_adjust_ff_dim") == Some(false) || cx.keys.u64(decoder::EXPERTS).is_some() {
        return Ok(width);
    }
    let factor =
        cx.keys.get(&["block_ffn_dim_multiplier"]).and_then(serde_json::Value::as_f64).unwrap_or(1.0);
    let width = (floor_div(mul([2, width]), 3) as f64 * factor) as u64;
    Ok(round_up(width, cx.keys.u64_or("block_multiple_of", 256).max(1)))
}
