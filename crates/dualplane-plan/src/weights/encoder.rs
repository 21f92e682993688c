//! Encoders of images, by family of tower. A tower that is not known is an error, unless it is switched off.

use serde_json::Value;

use super::tally::Tally;
use super::{plain_towers, sound, towers};
use crate::arith::{floor_div, mul};
use crate::launch::Launch;
use crate::model::keys::Keys;
use crate::model::{Encoder, Family, Model};
use crate::outcome::PlanError;
use crate::outcome::TensorClass::{Rotary, Vision};

/// A stack of equal blocks.
pub(super) struct Blocks {
    pub(super) layers: u64,
    pub(super) hidden: u64,
    /// Elements of queries, keys and values together.
    pub(super) qkv: u64,
    pub(super) intermediate: u64,
    /// Matrices of the feed-forward: 2, or 3 with a gate.
    pub(super) matrices: u64,
    pub(super) attention_bias: bool,
    pub(super) mlp_bias: bool,
    /// Elements of the norms of one block.
    pub(super) norms: u64,
}

impl Blocks {
    /// As of CLIP and SigLIP: biases everywhere, two matrices, two norms with biases.
    pub(super) fn plain(e: &Encoder) -> Self {
        Self {
            layers: e.layers,
            hidden: e.hidden_size,
            qkv: 3 * e.hidden_size,
            intermediate: e.intermediate_size,
            matrices: 2,
            attention_bias: true,
            mlp_bias: true,
            norms: 4 * e.hidden_size,
        }
    }

    /// Elements of the queries: with keys and values as many as heads of their own, a third of all three.
    const fn queries(&self) -> u64 {
        if self.qkv < 3 * self.hidden { self.hidden } else { floor_div(self.qkv, 3) }
    }

    /// Elements that ranks share, and elements that each holds.
    pub(super) fn elements(&self) -> (u64, u64) {
        // The output projection reads as much as the queries are wide.
        let v = self.queries();
        let ups = mul([self.matrices.saturating_sub(1), self.intermediate]);
        let mut cut = mul([
            self.hidden,
            self.qkv.saturating_add(v).saturating_add(ups).saturating_add(self.intermediate),
        ]);
        let mut whole = self.norms;
        if self.attention_bias {
            cut = cut.saturating_add(self.qkv);
            whole = whole.saturating_add(self.hidden);
        }
        if self.mlp_bias {
            cut = cut.saturating_add(ups);
            whole = whole.saturating_add(self.hidden);
        }
        (mul([self.layers, cut]), mul([self.layers, whole]))
    }
}

pub(super) fn add(t: &mut Tally<'_>, model: &Model, launch: &Launch) {
    if let Some(e) = &model.sound {
        if !launch.uneven_towers {
            sound::even(t, e);
        }
        sound::add(t, model, e, !launch.encoder_data_parallel);
    }
    let Some(e) = &model.encoder else { return };
    let cuts = !launch.encoder_data_parallel;
    let architecture = model.architecture.as_str();
    if cuts && !launch.uneven_towers {
        even(t, model, e);
    }
    match (model.family, architecture) {
        (_, "MiniCPMV4_6ForConditionalGeneration" | "MiniCPMV4_7ForConditionalGeneration") => {
            towers::add(t, model, e, cuts);
        }
        (Family::QwenHybrid, _)
        | (
            _,
            "Qwen3VLForConditionalGeneration"
            | "Qwen3VLMoeForConditionalGeneration"
            | "Qwen3OmniMoeForConditionalGeneration",
        ) => {
            qwen3(t, e, cuts);
        }
        (
            _,
            "Qwen2_5_VLForConditionalGeneration" | "Qwen2_5OmniModel" | "Qwen2_5OmniForConditionalGeneration",
        ) => qwen2_5(t, e, cuts),
        (_, "KimiK25ForConditionalGeneration" | "KimiK3ForConditionalGeneration") => kimi(t, model, e, cuts),
        (Family::Llama4, _) => llama4(t, model, e, cuts),
        (Family::Gemma4, _) => gemma4(t, model, e),
        (Family::Gemma, _) => siglip(t, model, e, cuts),
        _ => towers::add(t, model, e, cuts),
    }
}

/// What ranks share of a tower must be shared evenly (vLLM layers/linear.py `divide`): its heads, and the width of its
/// feed-forward. Kimi's is whole on each rank where it cannot be, Gemma 4's always; of the others only the outline is known.
fn even(t: &mut Tally<'_>, model: &Model, e: &Encoder) {
    let tp = t.rank.tp;
    let whole = matches!(
        (model.family, model.architecture.as_str()),
        (Family::Gemma4, _) | (_, "KimiK25ForConditionalGeneration" | "KimiK3ForConditionalGeneration")
    );
    if whole || tp <= 1 {
        return;
    }
    let gated = matches!(e.family.as_str(), "exaone4_5_vision")
        || matches!(
            model.architecture.as_str(),
            "Qwen2_5_VLForConditionalGeneration" | "Qwen2_5OmniModel" | "Qwen2_5OmniForConditionalGeneration"
        );
    let known = gated || plain_towers::tower(model, e).is_some();
    for (what, n, counts) in [
        ("encoder heads", e.heads, known),
        ("elements of the encoder's feed-forward", e.intermediate_size, known),
    ] {
        if counts && !n.is_multiple_of(tp) {
            let why = format!(
                "{n} {what} cannot be split evenly among {tp} ranks; --mm-encoder-tp-mode data keeps it whole"
            );
            t.reject(PlanError::contradiction("--tensor-parallel-size", why));
        }
    }
}

/// Adds elements that are cut among ranks, if they are, and elements that each rank holds.
pub(super) fn put(t: &mut Tally<'_>, cuts: bool, cut: u64, whole: u64) {
    let share = if cuts { floor_div(cut, t.rank.tp) } else { cut };
    let element = t.rank.element;
    t.add(Vision, [share.saturating_add(whole), element]);
}

pub(super) fn key(raw: &Value, name: &'static str, default: u64) -> u64 {
    Keys::new(raw).u64_or(name, default)
}

/// Qwen3-VL and Qwen3.5: patches, learned positions, blocks, a merger and one more for each deep stack.
fn qwen3(t: &mut Tally<'_>, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let blocks = Blocks::plain(e);
    if cuts && t.rank.tp > 0 && !e.heads.is_multiple_of(t.rank.tp) {
        t.reject(PlanError::contradiction(
            "--tensor-parallel-size",
            format!("{} encoder heads cannot be split evenly", e.heads),
        ));
    }
    let (mut cut, mut whole) = blocks.elements();
    let pixels = mul([
        key(&e.raw, "in_channels", 3),
        key(&e.raw, "temporal_patch_size", 2),
        square(&e.raw, "patch_size", 16),
    ]);
    whole = whole.saturating_add(mul([pixels, h])).saturating_add(h);
    whole = whole.saturating_add(mul([key(&e.raw, "num_position_embeddings", 2304), h]));
    let merged = mul([square(&e.raw, "spatial_merge_size", 2), h]);
    let deep = e.raw.get("deepstack_visual_indexes").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let mergers = 1 + deep;
    cut = cut.saturating_add(mul([mergers, merged, merged.saturating_add(1)]));
    cut = cut.saturating_add(mul([mergers, merged, e.out_hidden_size]));
    whole = whole.saturating_add(mul([mergers, e.out_hidden_size]));
    // The first merger norms patches, the others norm what they merge.
    whole = whole.saturating_add(2 * h).saturating_add(mul([deep, 2, merged]));
    put(t, cuts, cut, whole);
    // 8,192 positions of half a head (vLLM models/qwen3_vl.py).
    let element = t.rank.element;
    t.add(Rotary, [8192, floor_div(h, 2 * e.heads.max(1)), element]);
}

/// Qwen2.5-VL: gated blocks with biases.
pub(super) fn qwen2_5(t: &mut Tally<'_>, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let blocks = Blocks {
        layers: e.layers,
        hidden: h,
        qkv: h.saturating_add(mul([
            2,
            floor_div(h, e.heads.max(1)),
            key(&e.raw, "num_key_value_heads", e.heads),
        ])),
        intermediate: e.intermediate_size,
        matrices: 3,
        attention_bias: true,
        mlp_bias: true,
        norms: 2 * h,
    };
    let (mut cut, mut whole) = blocks.elements();
    let pixels = mul([3, key(&e.raw, "temporal_patch_size", 2), square(&e.raw, "patch_size", 14)]);
    whole = whole.saturating_add(mul([pixels, h])).saturating_add(h);
    let merged = mul([square(&e.raw, "spatial_merge_size", 2), h]);
    cut = cut
        .saturating_add(mul([merged, merged.saturating_add(1)]))
        .saturating_add(mul([merged, e.out_hidden_size]));
    whole = whole.saturating_add(e.out_hidden_size);
    put(t, cuts, cut, whole);
}

pub(super) fn square(raw: &Value, name: &'static str, default: u64) -> u64 {
    let side = key(raw, name, default);
    mul([side, side])
}

fn flag(raw: &Value, name: &str, default: bool) -> bool {
    raw.get(name).and_then(Value::as_bool).unwrap_or(default)
}

/// MoonViT: cut by heads where they divide, else whole on each rank; the projector is always whole.
fn kimi(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let norm = if e.raw.get("norm_type").and_then(Value::as_str) == Some("rmsnorm") { h } else { 2 * h };
    let linear_bias = flag(&e.raw, "linear_bias", true);
    let blocks = Blocks {
        layers: e.layers,
        hidden: h,
        qkv: 3 * key(&e.raw, "qkv_hidden_size", h),
        intermediate: e.intermediate_size,
        matrices: 2,
        attention_bias: flag(&e.raw, "attn_bias", true),
        mlp_bias: linear_bias,
        norms: 2 * norm,
    };
    let (cut, mut whole) = blocks.elements();
    whole = whole.saturating_add(mul([3, square(&e.raw, "patch_size", 14), h]));
    if flag(&e.raw, "patch_embed_proj_bias", true) {
        whole = whole.saturating_add(h);
    }
    let places = mul([key(&e.raw, "init_pos_emb_height", 64), key(&e.raw, "init_pos_emb_width", 64)]);
    whole = whole
        .saturating_add(mul([places.saturating_add(key(&e.raw, "init_pos_emb_time", 4)), h]))
        .saturating_add(norm);
    let merge = e.raw.get("merge_kernel_size").and_then(Value::as_array);
    let patches =
        merge.map_or(4, |m| m.iter().filter_map(crate::model::keys::number).fold(1, u64::saturating_mul));
    let (merged, out) = (mul([patches, h]), model.hidden_size);
    whole = whole.saturating_add(mul([merged, merged])).saturating_add(mul([merged, out]));
    // Two biases and the norm before; the second merger has two norms instead.
    whole =
        whole.saturating_add(merged).saturating_add(out).saturating_add(if linear_bias { norm } else { 0 });
    put(t, cuts && e.heads.is_multiple_of(t.rank.tp.max(1)), cut, whole);
}

/// Llama 4, whose configs often leave the encoder to transformers' defaults.
fn llama4(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let blocks = Blocks::plain(e);
    let (mut cut, mut whole) = blocks.elements();
    let (input, output) =
        (key(&e.raw, "projector_input_dim", 4096), key(&e.raw, "projector_output_dim", 4096));
    cut = cut.saturating_add(mul([e.intermediate_size, input])).saturating_add(mul([input, output]));
    cut = cut.saturating_add(mul([key(&e.raw, "vision_output_dim", 7680), model.hidden_size]));
    cut = cut.saturating_add(mul([3, square(&e.raw, "patch_size", 14), h]));
    let side = floor_div(key(&e.raw, "image_size", 448), key(&e.raw, "patch_size", 14));
    let places = mul([side, side]).saturating_add(1);
    whole = whole.saturating_add(mul([places.saturating_add(1), h])).saturating_add(4 * h);
    put(t, cuts, cut, whole);
    // One complex number for each place and half of half a head.
    t.add(Rotary, [places, floor_div(h, 2 * e.heads.max(1)), 8]);
}

/// Gemma 4: whole on each rank.
fn gemma4(t: &mut Tally<'_>, model: &Model, e: &Encoder) {
    let h = e.hidden_size;
    let head = key(&e.raw, "head_dim", floor_div(h, e.heads.max(1)));
    let blocks = Blocks {
        layers: e.layers,
        hidden: h,
        qkv: mul([3, e.heads, head]),
        intermediate: e.intermediate_size,
        matrices: 3,
        attention_bias: false,
        mlp_bias: false,
        norms: (4 * h).saturating_add(2 * head),
    };
    let (cut, mut whole) = blocks.elements();
    whole = whole.saturating_add(mul([3, square(&e.raw, "patch_size", 16), h]));
    whole = whole.saturating_add(mul([2, key(&e.raw, "position_embedding_size", 10_240), h]));
    whole = whole.saturating_add(mul([h, model.hidden_size])).saturating_add(h);
    if flag(&e.raw, "standardize", false) {
        whole = whole.saturating_add(2 * h);
    }
    put(t, false, cut, whole);
}

/// SigLIP with Gemma 3's projector.
fn siglip(t: &mut Tally<'_>, model: &Model, e: &Encoder, cuts: bool) {
    let h = e.hidden_size;
    let blocks = Blocks::plain(e);
    let (cut, mut whole) = blocks.elements();
    let side = floor_div(key(&e.raw, "image_size", 896), key(&e.raw, "patch_size", 14));
    whole = whole.saturating_add(mul([3, square(&e.raw, "patch_size", 14), h])).saturating_add(h);
    whole = whole.saturating_add(mul([side, side, h])).saturating_add(3 * h);
    whole = whole.saturating_add(mul([h, model.hidden_size]));
    put(t, cuts, cut, whole);
}
