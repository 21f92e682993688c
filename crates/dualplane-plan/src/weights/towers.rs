//! Towers that a wrapper puts in front of any language model, by the kind that their own configuration names. Those of
//! which only the outline is known are estimated.

use serde_json::Value;

use super::encoder::{Blocks, key, put, qwen2_5, square};
use super::plain_towers;
use super::tally::Tally;
use crate::arith::{floor_div, mul};
use crate::model::keys::number;
use crate::model::{Encoder, Model};
use crate::outcome::TensorClass::{Rotary, Vision};

pub(super) fn add(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    match e.family.as_str() {
        "exaone4_5_vision" => qwen2_5(t, e, cuts),
        "glm4v_vision" | "glm4v_moe_vision" | "glm4v" | "glm4v_moe" => glm4v(t, e, cuts),
        // The published configs do not name the tower.
        "qwen2_vl" | "qwen2_vl_vision" | "Qwen2VLForConditionalGeneration" => qwen2(t, e, cuts),
        "internvl_vision" | "intern_vit_6b" | "interns1_vision" => intern(t, model, e, cuts),
        "glm_ocr_vision" => glm_ocr(t, model, e, cuts),
        "paddleocr_vl_vision" => paddle(t, model, e, cuts),
        "cosmos3_edge_vision" => cosmos(t, model, e, cuts),
        "muse_glimmer_vision" => muse(t, model, e, cuts),
        _ => outline(t, model, e, cuts),
    }
    // What asks a tower with learned questions, and hands over the answers (vLLM models/blip2.py).
    if let Some(asking) = model.config.get("qformer_config").filter(|v| v.is_object()) {
        let width = key(asking, "hidden_size", 768);
        put(t, false, 0, questions(asking).saturating_add(mul([width.saturating_add(1), model.hidden_size])));
    }
}

/// Elements of a Q-Former, whole on each rank: self-attention on each layer, attention to the tower's output on some.
pub(super) fn questions(raw: &Value) -> u64 {
    let h = key(raw, "hidden_size", 768);
    let layers = key(raw, "num_hidden_layers", 12);
    let wide = key(raw, "intermediate_size", 3072);
    let tower = key(raw, "encoder_hidden_size", 1408);
    let crossing = layers.div_ceil(key(raw, "cross_attention_frequency", 2).max(1));
    // Each of four projections has a bias, and a norm with one follows.
    let own = mul([4, h, h]).saturating_add(6 * h);
    let network = mul([2, h, wide]).saturating_add(wide).saturating_add(3 * h);
    let across = mul([2, h, h.saturating_add(tower)]).saturating_add(6 * h);
    mul([layers, own.saturating_add(network)]).saturating_add(mul([crossing, across])).saturating_add(2 * h)
}

/// Patches as a linear, learned places for them, and a norm.
fn patches(e: &Encoder, places: u64) -> u64 {
    let pixels = mul([3, square(&e.raw, "patch_size", 14)]);
    mul([pixels.saturating_add(places).saturating_add(3), e.hidden_size])
}

/// vLLM models/glm_ocr.py: GLM-4V's with biases and norms of queries and keys; the merger is as wide as the language model's
/// feed-forward.
fn glm_ocr(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let (h, out) = (e.hidden_size, e.out_hidden_size);
    let blocks = Blocks {
        layers: e.layers,
        hidden: h,
        qkv: 3 * h,
        intermediate: e.intermediate_size,
        matrices: 3,
        attention_bias: true,
        mlp_bias: true,
        norms: (2 * h).saturating_add(2 * floor_div(h, e.heads.max(1))),
    };
    let (mut cut, mut whole) = blocks.elements();
    let pixels = mul([3, key(&e.raw, "temporal_patch_size", 2), square(&e.raw, "patch_size", 14)]);
    whole = whole.saturating_add(mul([pixels.saturating_add(2), h]));
    whole = whole.saturating_add(mul([square(&e.raw, "spatial_merge_size", 2), h, out])).saturating_add(out);
    let wide = model.text.get("intermediate_size").and_then(number).unwrap_or(0);
    cut = cut.saturating_add(mul([out, out])).saturating_add(mul([3, out, wide]));
    put(t, cuts, cut, whole);
    // 8,192 positions of half a head.
    let element = t.rank.element;
    t.add(Rotary, [8192, floor_div(h, 2 * e.heads.max(1)), element]);
}

/// vLLM models/paddleocr_vl.py: SigLIP, and a projector of neighbouring patches that nothing cuts.
fn paddle(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let (cut, whole) = Blocks::plain(e).elements();
    let side = floor_div(key(&e.raw, "image_size", 384), key(&e.raw, "patch_size", 14).max(1));
    let merged = mul([square(&e.raw, "spatial_merge_size", 2), e.hidden_size]);
    let projector = mul([merged.saturating_add(1), merged.saturating_add(model.hidden_size)]);
    put(t, cuts, cut, whole.saturating_add(patches(e, mul([side, side]))).saturating_add(projector));
}

/// vLLM models/cosmos3_edge.py: SigLIP 2, and a merger with a width of its own.
fn cosmos(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let (cut, whole) = Blocks::plain(e).elements();
    let merged = mul([square(&e.raw, "spatial_merge_size", 2), e.hidden_size]);
    let wide = model.config.get("projector_hidden_size").and_then(number).unwrap_or(merged);
    let merger = mul([wide, merged.saturating_add(model.hidden_size).saturating_add(1)]);
    let whole =
        whole.saturating_add(patches(e, key(&e.raw, "num_patches", 256))).saturating_add(model.hidden_size);
    put(t, cuts, cut.saturating_add(merger), whole);
}

/// vLLM models/muse_glimmer.py: only the attention is cut; an adapter and a projection follow.
fn muse(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let attention = mul([e.layers, 4, h, h.saturating_add(1)]);
    let network = mul([2, h, e.intermediate_size]).saturating_add(e.intermediate_size).saturating_add(5 * h);
    let places = mul([key(&e.raw, "pos_emb_height", 32), key(&e.raw, "pos_emb_width", 32)]);
    let pixels = mul([3, key(&e.raw, "patch_temporal", 2), square(&e.raw, "patch_size", 14)]);
    let of = |name: &str, default: u64| model.config.get(name).and_then(number).unwrap_or(default);
    let (out, wide) = (of("out_hidden_size", 4 * h), of("projector_hidden_size", 4096));
    let behind = mul([wide, out.saturating_add(wide).saturating_add(model.hidden_size)]);
    let whole =
        mul([e.layers, network]).saturating_add(mul([pixels.saturating_add(places).saturating_add(4), h]));
    put(t, cuts, attention, whole.saturating_add(behind));
}

/// vLLM models/qwen2_vl.py: plain blocks without positions, and a merger of neighbouring patches.
fn qwen2(t: &mut Tally<'_>, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let (cut, mut whole) = Blocks::plain(e).elements();
    let pixels = mul([3, key(&e.raw, "temporal_patch_size", 2), square(&e.raw, "patch_size", 14)]);
    whole = whole.saturating_add(mul([pixels, h])).saturating_add(2 * h);
    let merged = mul([square(&e.raw, "spatial_merge_size", 2), h]);
    let merger = mul([merged, merged.saturating_add(1)]).saturating_add(mul([merged, e.out_hidden_size]));
    put(t, cuts, cut.saturating_add(merger), whole.saturating_add(e.out_hidden_size));
}

/// vLLM models/glm4_1v.py: gated blocks as wide as what they hand over, a convolution and a gated merger behind them.
fn glm4v(t: &mut Tally<'_>, e: &Encoder, cuts: bool) {
    let (h, out) = (e.hidden_size, e.out_hidden_size);
    let blocks = Blocks {
        layers: e.layers,
        hidden: h,
        qkv: 3 * h,
        intermediate: out,
        matrices: 3,
        attention_bias: false,
        mlp_bias: false,
        norms: 2 * h,
    };
    let (mut cut, mut whole) = blocks.elements();
    whole = whole.saturating_add(mul([
        3,
        key(&e.raw, "temporal_patch_size", 2),
        square(&e.raw, "patch_size", 14),
        h,
    ]));
    let side = floor_div(key(&e.raw, "image_size", 336), key(&e.raw, "patch_size", 14).max(1));
    whole = whole.saturating_add(mul([side, side, h]));
    whole = whole.saturating_add(mul([square(&e.raw, "spatial_merge_size", 2), h, out]));
    cut = cut.saturating_add(mul([out, out])).saturating_add(mul([3, out, e.intermediate_size]));
    put(t, cuts, cut, whole);
}

/// vLLM models/interns1_vit.py and intern_vit.py: the first attends whole on each rank. Four patches enter the projector as
/// one.
fn intern(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let (h, text) = (e.hidden_size, model.hidden_size);
    let attention = mul([e.layers, 4, h, h]);
    let networks = mul([e.layers, 2, h, e.intermediate_size]);
    let first = |name: &str, default: u64| {
        let value = e.raw.get(name);
        value.and_then(|v| number(v).or_else(|| number(v.get(0)?))).unwrap_or(default)
    };
    let (patch, image) = (first("patch_size", 14), first("image_size", 448));
    let side = floor_div(image, patch.max(1));
    let mut whole = mul([3, patch, patch, h]).saturating_add(mul([side, side, h]));
    whole = whole.saturating_add(mul([4, h, text])).saturating_add(mul([text, text]));
    if e.family == "intern_vit_6b" {
        put(t, cuts, networks.saturating_add(attention), whole);
    } else {
        put(t, cuts, networks, whole.saturating_add(attention));
    }
}

/// Layers up to the deepest whose output is handed on (vLLM models/llava.py and mistral3.py `_get_num_hidden_layers`).
pub(super) fn deepest(model: &Model, e: &Encoder) -> u64 {
    let index = |v: &Value| {
        let n = v.as_i64()?;
        let below = n.unsigned_abs();
        Some(if n < 0 { (e.layers + 1).saturating_sub(below) } else { below })
    };
    // Only these build no more than they need; transformers' classes of the older ones take the last layer but one by default.
    let a = model.architecture.as_str();
    let drops = model.config.get("drop_vision_last_layer").and_then(Value::as_bool) == Some(true);
    let default = match a {
        _ if a.starts_with("MiniCPMV") => return e.layers.saturating_sub(u64::from(drops)),
        "LlavaOnevisionForConditionalGeneration" | "Mistral3ForConditionalGeneration" => e.layers,
        _ if a.starts_with("Llava") => e.layers.saturating_sub(1),
        _ => return e.layers,
    };
    let deepest = match model.config.get("vision_feature_layer") {
        Some(Value::Array(list)) => list.iter().filter_map(index).max(),
        Some(one) => index(one),
        None => None,
    };
    deepest.unwrap_or(default)
}

/// Blocks of its config, patches, positions and a projector of two layers: exact where tower and wrapper are known, else a
/// guess.
fn outline(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    match plain_towers::tower(model, e) {
        Some((cut, whole)) => put(t, cuts, cut, whole),
        None => {
            let h = e.hidden_size;
            let gated = matches!(e.family.as_str(), "qwen2_5_vl" | "mistral3_vision" | "aimv2");
            let blocks = Blocks { matrices: if gated { 3 } else { 2 }, ..Blocks::plain(e) };
            let (cut, whole) = blocks.elements();
            let side = key(&e.raw, "patch_size", 14);
            let places = floor_div(key(&e.raw, "image_size", 224), side.max(1));
            let patches = mul([3, side, side, h]).saturating_add(mul([places, places, h]));
            guess(t, cuts, cut, whole.saturating_add(patches));
        }
    }
    match plain_towers::projector(model, e) {
        // It is cut like the language model, whatever becomes of the tower.
        Some((cut, whole)) => put(t, true, cut, whole),
        None => guess(t, cuts, 0, mul([model.hidden_size, model.hidden_size.saturating_add(e.hidden_size)])),
    }
}

pub(super) fn guess(t: &mut Tally<'_>, cuts: bool, cut: u64, whole: u64) {
    let share = if cuts { floor_div(cut, t.rank.tp) } else { cut };
    t.guess(Vision, mul([share.saturating_add(whole), t.rank.element]));
}
