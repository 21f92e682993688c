//! Dense networks and experts.

use serde_json::Value;

use super::tally::{Tally, matrix};
use crate::arith::{ceil_div, gcd, lcm, mul, round_up};
use crate::model::family::{self, Renormalises};
use crate::model::keys::number;
use crate::model::{Family, FeedForward, LinearScheme, Model, Moe};
use crate::outcome::PlanError;
use crate::outcome::TensorClass::{self, Attention, Mlp, Moe as M};
use dualplane_base::Version;

pub(super) fn add(t: &mut Tally<'_>, model: &Model, f: &FeedForward) {
    let mlp = model.traits.mlp;
    match *f {
        FeedForward::None => {}
        FeedForward::Dense { intermediate, gated, bias } => {
            let module = if model.family == family::Family::KimiLinear { "mlp" } else { mlp };
            // The engine's names put Nemotron-H's dense layers with its mixers.
            let class = if model.family == Family::NemotronH { Attention } else { Mlp };
            dense(t, class, module, model.hidden_size, intermediate, gated, bias);
        }
        FeedForward::Moe(m) => {
            if m.dense_beside > 0 {
                dense(t, Mlp, "mlp", model.hidden_size, m.dense_beside, true, false);
            }
            experts(t, model, mlp, &m);
        }
    }
}

/// A network whose width is cut among ranks.
fn dense(
    t: &mut Tally<'_>,
    class: TensorClass,
    module: &str,
    hidden: u64,
    width: u64,
    gated: bool,
    bias: bool,
) {
    let width = if t.model.traits.mlp_whole { width } else { t.cut(width, "intermediate size") };
    if gated {
        t.linear(class, module, &[("gate_proj", width), ("up_proj", width)], hidden, bias);
    } else {
        t.linear(class, module, &[("up_proj", width)], hidden, bias);
    }
    t.linear(class, module, &[("down_proj", hidden)], width, bias);
    // DeepSeek-V4 allows shared experts that are no whole tiles.
    if t.model.family != Family::DeepseekV4 {
        t.whole_tiles(module, "down_proj", Some(width), &[]);
    }
}

fn experts(t: &mut Tally<'_>, model: &Model, mlp: &str, m: &Moe) {
    let hidden = model.hidden_size;
    let element = t.rank.element;
    // Where no kernel mixes precisions, Nemotron-H keeps its router in 32 bits (vLLM layers/fused_moe GateLinear).
    let wide = model.family == Family::NemotronH && !matches!(t.rank.sm / 10, 9 | 10);
    let router_bytes = if m.router_bytes > 0 {
        m.router_bytes
    } else if wide {
        4
    } else {
        element
    };
    let choices = m.experts.saturating_add(m.zero_experts);
    t.add(M, [choices, hidden, router_bytes]);
    if m.router_bias {
        t.add(M, [choices, router_bytes]);
    }
    if m.router_correction {
        t.add(M, [choices, m.correction_bytes]);
    }
    if m.hash_table_rows > 0 {
        t.add(M, [m.hash_table_rows, m.top_k, 4]);
    }
    // Experts beside a dense network have no module around them.
    let module = if m.dense_beside > 0 { "experts".to_owned() } else { format!("{mlp}.experts") };
    routed(t, model, &module, m, m.latent.unwrap_or(hidden));
    if let Some(latent) = m.latent {
        let class = if model.family == Family::NemotronH { Attention } else { M };
        t.linear(class, mlp, &[("fc1_latent_proj", latent)], hidden, false);
        t.linear(class, mlp, &[("fc2_latent_proj", hidden)], latent, false);
    }
    if m.shared_intermediate > 0 {
        let name = if m.shared_gate { "shared_expert" } else { "shared_experts" };
        dense(t, M, &format!("{mlp}.{name}"), hidden, m.shared_intermediate, m.gated, false);
        if m.shared_gate {
            t.linear(M, mlp, &[("shared_expert_gate", 1)], hidden, false);
        }
    }
}

/// The experts that a rank holds: all of them cut, or some of them whole.
fn routed(t: &mut Tally<'_>, model: &Model, module: &str, m: &Moe, hidden: u64) {
    let local = if t.rank.ep > 1 {
        ceil_div(m.experts.saturating_add(t.rank.redundant), t.rank.ep)
    } else {
        m.experts
    };
    let mut width =
        if t.rank.ep > 1 { m.intermediate } else { t.cut(m.intermediate, "expert intermediate size") };
    if model.family == Family::KimiLinear && t.rank.ep == 1 && t.rank.tp > 1 {
        // Narrower shares are padded (vLLM models/kimi_k3).
        let least = model.text.get("min_moe_intermediate_per_partition").and_then(number).unwrap_or(256);
        width = width.max(least);
    }
    let element = t.rank.element;
    let scheme = t.expert_scheme(module);
    let up = if m.gated { 2 } else { 1 };
    if model.family == Family::GptOss && scheme == LinearScheme::Mxfp4 {
        return gpt_oss(t, local, width, hidden);
    }
    let scheme = match scheme {
        LinearScheme::Fp8Block { rows, columns } => tiles(t, (rows, columns), width, hidden),
        other => other,
    };
    let asked = width;
    let width = match scheme {
        // FlashInfer's TRT-LLM kernels on Blackwell take unquantised experts in widths of 128; others' stay as they are.
        LinearScheme::Plain if t.rank.sm / 10 == 10 && trtllm(model) => round_up(width, 128),
        // vLLM fused_moe/oracle/mxfp4.py: Marlin and TRT-LLM want 128, the kernels of Hopper 64.
        LinearScheme::Mxfp4 => round_up(width, if t.rank.sm / 10 == 9 { 64 } else { 128 }),
        // flashinfer_fp4_moe.py: ungated experts' rows in whole 128.
        LinearScheme::Nvfp4 { .. } if t.rank.sm >= 100 && !m.gated => round_up(width, 128),
        _ => marlin(t, scheme, width, hidden),
    };
    let hidden = match scheme {
        LinearScheme::Mxfp4 if t.rank.sm / 10 != 9 => round_up(hidden, 256),
        _ => hidden,
    };
    // FlashInfer's CUTLASS kernels take per-tensor FP8 experts in widths of 128 (Hopper, SM120; vLLM fused_moe/oracle/fp8.py).
    if matches!(scheme, LinearScheme::Fp8Tensor { .. }) && matches!(t.rank.sm / 10, 9 | 12) {
        let of = |width: u64| mul([local, hidden, mul([up, width]).saturating_add(width)]);
        let padded = of(round_up(width, 128));
        t.add(M, [padded]);
        t.pads(padded.saturating_sub(of(width)));
        return;
    }
    let bytes = |outputs: &[u64], inputs: u64| match scheme {
        // Marlin, which serves FP8 where the card has none, spreads scales over rows, in 16 bits.
        LinearScheme::Fp8Block { columns, .. } if t.rank.sm < 89 => {
            let out = outputs.iter().fold(0, |a: u64, b| a.saturating_add(*b));
            mul([out, inputs]).saturating_add(mul([ceil_div(inputs, columns), out, element]))
        }
        _ => matrix(scheme, outputs, inputs, element),
    };
    let (up_bytes, down_bytes) = (bytes(ways_in(m, &[width; 2]), hidden), bytes(&[hidden], width));
    let one = up_bytes.saturating_add(down_bytes);
    // What Marlin's tiles add is vLLM's own; SGLang, which counts by the same shapes, does without.
    if width == marlin(t, scheme, asked, hidden) {
        let read = bytes(ways_in(m, &[asked; 2]), hidden).saturating_add(bytes(&[hidden], asked));
        t.pads(mul([local, one.saturating_sub(read)]));
    }
    // All experts of a layer lie in one tensor for the way up and one for the way down.
    t.allocated(mul([local, up_bytes]), 1);
    t.allocated(mul([local, down_bytes]), 1);
    t.adapters(ways_in(m, &[width; 2]), hidden, local);
    t.adapters(&[hidden], width, local);
    t.add(M, [local, one]);
    if m.bias {
        t.add(M, [local, mul([up, width]).saturating_add(hidden), element]);
    }
}

/// Of a gate and a way up, those that an expert has.
fn ways_in<'a>(m: &Moe, both: &'a [u64; 2]) -> &'a [u64] {
    if m.gated { both } else { &both[..1] }
}

/// Widths as Marlin takes them: whole tiles of 64, and whole groups. It serves what a card has no kernels for.
///
/// Source: vLLM 0.33.0 quantization/utils/marlin_utils.py `marlin_moe_padded_intermediate`, marlin_utils_fp4.py; before
/// 0.25.0 other kernels took what does not fit.
fn marlin(t: &Tally<'_>, scheme: LinearScheme, width: u64, hidden: u64) -> u64 {
    let sm = t.rank.sm;
    if t.rank.version < Version(0, 25, 0) {
        return width;
    }
    match scheme {
        // Hopper and the large Blackwell have kernels of their own; a group that a rank cuts is left to others.
        LinearScheme::IntGroup { group, .. } if !matches!(sm / 10, 9 | 10) => {
            let group = group.max(1);
            let fits = hidden.is_multiple_of(128) && width.is_multiple_of(group);
            if fits { round_up(width, lcm(64, group)) } else { width }
        }
        LinearScheme::Fp8Block { columns, .. } if sm < 89 => round_up(width, lcm(64, columns.max(1))),
        LinearScheme::Fp8Tensor { .. } | LinearScheme::Fp8Channel if sm < 89 => round_up(width, 64),
        LinearScheme::Nvfp4 { .. } if sm < 90 => {
            round_up(width, if hidden.is_multiple_of(128) { 64 } else { 128 })
        }
        _ => width,
    }
}

/// Whether those kernels take a model's experts: they know few activations, and few ways to choose experts.
///
/// Source: vLLM 0.33.0 fused_moe/oracle/unquantized.py, experts/trtllm_bf16_moe.py, config.py `get_routing_method_type`.
fn trtllm(model: &Model) -> bool {
    let text = |keys: &[&str]| keys.iter().find_map(|k| model.text.get(k).and_then(Value::as_str));
    let activation = text(&["mlp_hidden_act", "hidden_activation", "hidden_act"]).unwrap_or("silu");
    if model.family == Family::GptOss || !matches!(activation, "silu" | "swish" | "relu2") {
        return false;
    }
    let renormalised =
        match (model.traits.renormalises, model.text.get("norm_topk_prob").and_then(Value::as_bool)) {
            (Renormalises::UnlessOff, said) => said != Some(false),
            (Renormalises::IfOn, said) => said == Some(true),
            (Renormalises::Never, _) => false,
        };
    renormalised || text(&["scoring_func"]) == Some("sigmoid")
}

/// FP4 experts of gpt-oss in the layout of the kernels of each card.
///
/// Source: vLLM fused_moe/oracle/mxfp4.py `mxfp4_round_up_hidden_size_and_intermediate_size`; triton_kernels' layout of
/// scales on Hopper (rows in 256, columns in 4).
fn gpt_oss(t: &mut Tally<'_>, local: u64, width: u64, hidden: u64) {
    let (width, hidden, triton) = match t.rank.sm / 10 {
        9 => (round_up(width, 64), hidden, true),
        _ => (round_up(width, 128), round_up(hidden, 256), false),
    };
    let ups = 2 * width;
    let data = mul([ups, hidden]).saturating_add(mul([hidden, width])) / 2;
    if !triton {
        let scales = mul([ups, hidden / 32]).saturating_add(mul([hidden, width / 32]));
        t.add(M, [local, data.saturating_add(scales)]);
        let element = t.rank.element;
        t.add(M, [local, ups.saturating_add(hidden), element]);
        return;
    }
    let scale = |rows: u64, columns: u64| mul([round_up(rows, 256), round_up(ceil_div(columns, 32), 4)]);
    let scales = scale(ups, hidden).saturating_add(scale(hidden, width));
    // The kernels' own tensors belong to no module; the biases are kept in 32 bits.
    t.add(TensorClass::Unattached, [local, data.saturating_add(scales)]);
    t.add(M, [local, ups.saturating_add(hidden), 4]);
}

/// Tiles of FP8 experts whose share is not an integer of them: smaller tiles where kernels take them, else an error. (Only
/// with a kernel that `--moe-backend` names are shares padded instead.)
///
/// Source: vLLM fused_moe/oracle/fp8.py `resolve_fp8_moe_weight_block_shape`, `refine_fp8_moe_block_shape`; before 0.30.0
/// an error in any case.
fn tiles(t: &mut Tally<'_>, (rows, columns): (u64, u64), width: u64, hidden: u64) -> LinearScheme {
    let native = LinearScheme::Fp8Block { rows, columns };
    if width.is_multiple_of(rows) && (t.rank.tp == 1 || width.is_multiple_of(columns)) {
        return native;
    }
    let flag = "--tensor-parallel-size";
    let tile = gcd(gcd(rows, columns), gcd(width, hidden));
    if t.rank.version < Version(0, 30, 0) || tile < 32 {
        t.reject(PlanError::contradiction(
            flag,
            format!(
                "The output_size of gate's and up's weight = {width} is not divisible by weight quantization block_n = \
                 {rows}."
            ),
        ));
        return native;
    }
    if t.rank.sm < 89 {
        t.reject(PlanError::contradiction(flag, "No FP8 MoE backend supports the deployment configuration."));
    }
    LinearScheme::Fp8Block { rows: tile, columns: tile }
}
