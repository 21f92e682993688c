//! Weights that mix tokens.

use super::state_space;
use super::tally::{Tally, matrix};
use crate::arith::{floor_div, mul};
use crate::launch::kv_heads;
use crate::model::keys::number;
use crate::model::{
    Attention, CompressedMla, Family, GatedDelta, Gqa, Kda, LinearScheme, Mamba2, Mla, Model, QkNorm,
};
use crate::outcome::TensorClass::{self, Attention as A, Mlp, Norms};
use dualplane_base::Version;

pub(super) fn add(t: &mut Tally<'_>, model: &Model, attention: &Attention) {
    match attention {
        Attention::None => {}
        // Shared by several layers, and counted once (`state_space::shared`).
        Attention::Gqa(_) if model.family == Family::Zamba => {}
        // A further run of layers that were counted.
        Attention::Gqa(_) if model.family == Family::Recurrent && t.layer >= stacked(model) => {}
        Attention::Gqa(g) => gqa(t, model, g),
        Attention::Mla(m) => mla(t, model, m),
        Attention::Compressed(c) => compressed(t, model, c),
        Attention::Expanded(m) => mla(t, model, m),
        Attention::Mamba1(m) => state_space::mamba1(t, model, m),
        Attention::ShortConv(c) => state_space::short_conv(t, model, c),
        Attention::Mamba2(m) => mamba2(t, model, m),
        Attention::GatedDelta(g) => gated_delta(t, model, g),
        Attention::Kda(k) => kda(t, model, k),
    }
}

fn stacked(model: &Model) -> u64 {
    crate::model::family::with_weights(model.text.get("num_layers_per_stack").and_then(number).unwrap_or(0))
}

fn module(model: &Model) -> &'static str {
    if model.family == Family::NemotronH { "mixer" } else { "self_attn" }
}

fn gqa(t: &mut Tally<'_>, model: &Model, g: &Gqa) {
    let hidden = model.hidden_size;
    let heads = t.cut(g.heads, "number of attention heads");
    let kv = kv_heads(g.kv_heads, t.rank.tp);
    let q = mul([heads, g.head_dim, if g.output_gate { 2 } else { 1 }]);
    let (k, v) = (mul([kv, g.head_dim]), mul([kv, g.v_head_dim]));
    let module = module(model);
    let alone = g.shares_kv || g.query_only;
    if alone {
        t.linear(A, module, &[("q_proj", q)], hidden, g.qkv_bias);
    } else {
        t.linear(A, module, &[("q_proj", q), ("k_proj", k), ("v_proj", v)], hidden, g.qkv_bias);
    }
    t.linear(A, module, &[("o_proj", hidden)], mul([heads, g.v_head_dim]), g.o_bias);
    // What is fused on the way in may mismatch (vLLM layers/linear.py `_maybe_allow_fp8_block_shape_mismatch`).
    t.whole_tiles(module, "o_proj", Some(mul([heads, g.v_head_dim])), &[]);
    if g.gate_per_head > 0 {
        t.linear(A, module, &[("g_proj", mul([heads, g.gate_per_head]))], hidden, false);
    }
    let element = t.rank.element;
    match g.qk_norm {
        QkNorm::None => {}
        QkNorm::PerHead => t.add(Norms, [if alone { 1 } else { 2 }, g.head_dim, element]),
        QkNorm::Whole => t.add(Norms, [mul([heads, g.head_dim]).saturating_add(k), element]),
    }
    if g.sinks {
        t.add(A, [heads, element]);
    }
}

fn mla(t: &mut Tally<'_>, model: &Model, m: &Mla) {
    let hidden = model.hidden_size;
    let heads = t.cut(m.heads, "number of attention heads");
    let element = t.rank.element;
    let kv_a = m.kv_lora_rank.saturating_add(m.rope_dim);
    let q_out = mul([heads, m.nope_dim.saturating_add(m.rope_dim)]);
    if m.q_lora_rank > 0 {
        t.linear(A, "self_attn", &[("q_a_proj", m.q_lora_rank), ("kv_a_proj_with_mqa", kv_a)], hidden, false);
        t.linear(A, "self_attn", &[("q_b_proj", q_out)], m.q_lora_rank, false);
        t.add(Norms, [m.q_lora_rank, element]);
    } else {
        t.linear(A, "self_attn", &[("q_proj", q_out)], hidden, false);
        t.linear(A, "self_attn", &[("kv_a_proj_with_mqa", kv_a)], hidden, false);
    }
    t.add(Norms, [m.kv_lora_rank, element]);
    let up = mul([heads, m.nope_dim.saturating_add(m.v_dim)]);
    t.linear(A, "self_attn", &[("kv_b_proj", up)], m.kv_lora_rank, false);
    // Decode multiplies by 16-bit copies of a quantised projection (mla_attention.py process_weights_after_loading).
    let scheme = t.scheme("self_attn", &["kv_b_proj"]);
    if scheme != LinearScheme::Plain {
        t.add(A, [up, m.kv_lora_rank, element]);
    }
    if t.rank.version < Version(0, 8, 0) {
        products(t, m, scheme, heads, hidden);
    }
    let values = mul([heads, m.v_dim]);
    t.linear(A, "self_attn", &[("o_proj", hidden)], values, false);
    t.whole_tiles("self_attn", "o_proj", Some(values), &[q_out, up]);
    if m.output_gate {
        t.linear(A, "self_attn", &[("g_proj", values)], hidden, false);
    }
    if let Some(ix) = m.indexer.filter(|i| i.own) {
        t.linear(A, "self_attn.indexer", &[("wq_b", mul([ix.heads, ix.head_dim]))], m.q_lora_rank, false);
        t.plain(A, ix.head_dim.saturating_add(ix.heads), hidden);
        // A layer norm in 32 bits with a bias.
        t.add(Norms, [2, ix.head_dim, 4]);
    }
}

/// Products of neighbouring projections, which 0.7 held for decode beside the projections; FP8 stays FP8.
///
/// Source: vLLM 0.7.3 attention/backends/mla/utils.py `process_weights_after_loading`.
fn products(t: &mut Tally<'_>, m: &Mla, scheme: LinearScheme, heads: u64, hidden: u64) {
    let element = t.rank.element;
    let scheme = match scheme {
        LinearScheme::Fp8Block { .. } | LinearScheme::Fp8Tensor { .. } | LinearScheme::Fp8Channel => scheme,
        _ => LinearScheme::Plain,
    };
    let queries = if m.q_lora_rank > 0 { m.q_lora_rank } else { hidden };
    let latent = mul([heads, m.kv_lora_rank]);
    t.add(A, [matrix(scheme, &[latent], queries, element)]);
    t.add(A, [matrix(scheme, &[hidden], latent, element)]);
    t.add(A, [queries, heads, m.rope_dim, element]);
}

fn compressed(t: &mut Tally<'_>, model: &Model, c: &CompressedMla) {
    let hidden = model.hidden_size;
    let heads = t.cut(c.heads, "number of attention heads");
    let outputs = t.cut(mul([c.o_groups, c.o_lora_rank]), "width of the output groups");
    let element = t.rank.element;
    t.linear(A, "attn", &[("wq_a", c.q_lora_rank), ("wkv", c.head_dim)], hidden, false);
    t.linear(A, "attn", &[("wq_b", mul([heads, c.head_dim]))], c.q_lora_rank, false);
    let inputs = floor_div(mul([c.heads, c.head_dim]), c.o_groups);
    t.linear(A, "attn", &[("wo_a", outputs)], inputs, false);
    t.linear(A, "attn", &[("wo_b", hidden)], outputs, false);
    t.add(Norms, [c.q_lora_rank.saturating_add(c.head_dim), element]);
    t.add(A, [heads, 4]);
    hyper(t, model, A);
    hyper(t, model, Mlp);
    if c.ratio == 0 {
        return;
    }
    let overlap = if c.ratio == 4 { 2 } else { 1 };
    let mut compressor = |head_dim: u64| {
        let width = mul([overlap, head_dim]);
        // One projection for values and one for gates, 32-bit positions, a norm.
        t.add(A, [2, width, hidden, element]);
        t.add(A, [c.ratio, width, 4]);
        t.add(Norms, [head_dim, element]);
    };
    compressor(c.head_dim);
    if c.ratio == 4 {
        compressor(c.indexer.head_dim);
        t.linear(
            A,
            "attn.indexer",
            &[("wq_b", mul([c.indexer.heads, c.indexer.head_dim]))],
            c.q_lora_rank,
            false,
        );
        t.plain(A, c.indexer.heads, hidden);
    }
}

/// Streams of the residual that each half of a layer mixes (`hc_mult`, hyper-connections), in 32 bits.
fn hyper(t: &mut Tally<'_>, model: &Model, class: TensorClass) {
    let n = model.text.get("hc_mult").and_then(number).unwrap_or(0);
    if n > 0 {
        let rows = mul([n.saturating_add(2), n]);
        t.add(class, [rows, n, model.hidden_size, 4]);
        t.add(class, [rows.saturating_add(3), 4]);
    }
}

fn mamba2(t: &mut Tally<'_>, model: &Model, m: &Mamba2) {
    let tp = t.rank.tp;
    let element = t.rank.element;
    let heads = t.cut(m.heads, "number of Mamba heads");
    let groups = if m.groups.is_multiple_of(tp) { m.groups } else { tp.max(m.groups) };
    let groups = floor_div(groups, tp);
    let inner = floor_div(m.inner, tp);
    let shared = mul([groups, m.state]);
    let conv = inner.saturating_add(mul([2, shared]));
    let parts = [
        ("in_proj", inner),
        ("in_proj", inner),
        ("in_proj", shared),
        ("in_proj", shared),
        ("in_proj", heads),
    ];
    t.linear(A, "mixer", &parts, model.hidden_size, m.bias);
    t.linear(A, "mixer", &[("out_proj", model.hidden_size)], inner, m.bias);
    t.add(A, [conv, m.conv, element]);
    if m.conv_bias {
        t.add(A, [conv, element]);
    }
    // A in 32 bits, D and dt_bias in the model's dtype.
    t.add(A, [heads, 4 + 2 * element]);
    t.add(Norms, [inner, element]);
}

fn gated_delta(t: &mut Tally<'_>, model: &Model, g: &GatedDelta) {
    let hidden = model.hidden_size;
    let element = t.rank.element;
    let (k_heads, v_heads) =
        (t.cut(g.k_heads, "number of linear key heads"), t.cut(g.v_heads, "number of linear value heads"));
    let (k, v) = (mul([k_heads, g.k_dim]), mul([v_heads, g.v_dim]));
    let conv = mul([2, k]).saturating_add(v);
    t.linear(
        A,
        "linear_attn",
        &[("in_proj_qkv", k), ("in_proj_qkv", k), ("in_proj_qkv", v), ("in_proj_z", v)],
        hidden,
        false,
    );
    t.linear(A, "linear_attn", &[("in_proj_b", v_heads), ("in_proj_a", v_heads)], hidden, false);
    t.linear(A, "linear_attn", &[("out_proj", hidden)], v, false);
    t.add(A, [conv, g.conv, element]);
    // A in 32 bits, dt_bias in the model's dtype.
    t.add(A, [v_heads, 4 + element]);
    t.add(Norms, [g.v_dim, element]);
}

fn kda(t: &mut Tally<'_>, model: &Model, k: &Kda) {
    let hidden = model.hidden_size;
    let element = t.rank.element;
    let heads = t.cut(k.heads, "number of KDA heads");
    let inner = mul([heads, k.head_dim]);
    t.linear(A, "self_attn", &[("q_proj", inner), ("k_proj", inner), ("v_proj", inner)], hidden, false);
    t.linear(A, "self_attn", &[("o_proj", hidden)], inner, false);
    if k.full_rank_gate {
        t.linear(A, "self_attn", &[("g_proj", inner)], hidden, false);
    } else {
        t.linear(A, "self_attn", &[("g_a_proj", k.head_dim)], hidden, false);
        t.linear(A, "self_attn", &[("g_b_proj", inner)], k.head_dim, false);
    }
    t.linear(A, "self_attn", &[("f_a_proj", k.head_dim)], hidden, false);
    t.linear(A, "self_attn", &[("f_b_proj", inner)], k.head_dim, false);
    t.linear(A, "self_attn", &[("b_proj", heads)], hidden, false);
    t.add(A, [3, inner, k.conv, element]);
    // A per head and dt_bias per channel in 32 bits.
    t.add(A, [heads.saturating_add(inner), 4]);
    t.add(Norms, [k.head_dim, element]);
}
