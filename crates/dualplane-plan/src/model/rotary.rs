//! Positions: how long a context the config allows, and the tables of rotary embeddings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::family::{self, Family, ModelCode, Positions};
use super::keys::{Keys, number};
use super::layer::{Attention, Reach};
use super::{Model, RotaryTable};
use crate::outcome::PlanError;

/// vLLM transformers_utils/model_arch_config_convertor.py `derive_max_model_len_and_key`.
const LENGTHS: &[&str] = &[
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
];

/// No context is longer; a config that says so is broken or hostile.
const LONGEST: u64 = 1 << 40;

/// Kinds of scaling after which `max_position_embeddings` needs no factor (vLLM config/model.py).
const ALREADY_SCALED: &[&str] =
    &["su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling"];

/// The rotary settings of a config: one, or one for each kind of layer.
pub(super) fn settings(text: &Value) -> Vec<(&str, &Value)> {
    let Some(rope) =
        ["rope_parameters", "rope_scaling"].iter().find_map(|k| text.get(k)).filter(|v| v.is_object())
    else {
        return Vec::new();
    };
    let nested: Vec<_> = rope
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, v)| v.is_object())
        .map(|(k, v)| (k.as_str(), v))
        .collect();
    if nested.is_empty() { vec![("", rope)] } else { nested }
}

pub(super) fn kind(rope: &Value) -> &str {
    let kind =
        rope.get("rope_type").or_else(|| rope.get("type")).and_then(Value::as_str).unwrap_or("default");
    // vLLM transformers_utils/config.py patches these.
    if kind == "mrope" { "default" } else { kind }
}

/// Whether DeepSeek's code, which LongCat's layers are of, takes any scaling for its own.
const fn scales_its_own_way(family: Family) -> bool {
    matches!(family, Family::Deepseek | Family::Longcat)
}

/// Whether DeepSeek's code would end for want of a key: it takes any scaling for its own, which rests on the original context
/// (vLLM models/deepseek_v2.py; models/deepseek_v4/common/rope.py, where layers that compress are scaled alone). What is
/// estimated by the same keys has a class of its own, which may do without (HYV4).
pub(crate) fn lacks_original(model: &Model) -> bool {
    if model.estimated.is_some() {
        return false;
    }
    let own = match model.family {
        family if scales_its_own_way(family) => true,
        Family::DeepseekV4 => {
            model.layers.iter().any(|l| matches!(l.attention, Attention::Compressed(c) if c.ratio > 0))
        }
        _ => false,
    };
    // gpt-oss reads it whatever the kind (vLLM models/gpt_oss.py).
    let any = model.family == Family::GptOss;
    let without = |(_, rope): &(&str, &Value)| {
        (any || kind(rope) != "default") && rope.get("original_max_position_embeddings").is_none()
    };
    (own || any) && settings(&model.text).iter().any(without)
}

/// The context that the engine takes by itself, and the longest that it can be asked for, in tokens.
pub(super) fn lengths(keys: &Keys<'_>, text: &Value) -> Result<(u64, u64), PlanError> {
    let shortest = LENGTHS.iter().filter_map(|name| keys.u64(&[name])).min();
    let own = keys.u64(&["model_max_length"]).filter(|n| *n > 0);
    let Some(length) = own.or(shortest) else {
        // vLLM's fallback where no key tells.
        return Ok((2048, LONGEST));
    };
    let is_gemma3 = text.get("model_type").and_then(Value::as_str).is_some_and(|t| t.contains("gemma3"));
    let mut factor = 1.0;
    let mut by_itself = None;
    for (_, rope) in settings(text) {
        if !is_gemma3 && !ALREADY_SCALED.contains(&kind(rope)) {
            factor = rope.get("factor").and_then(Value::as_f64).unwrap_or(factor);
        }
        // Short prompts read better with the short factors (vLLM config/model.py `_get_and_verify_max_len`).
        if kind(rope) == "longrope" {
            by_itself = keys.u64(&["original_max_position_embeddings"]);
        }
    }
    if !(factor.is_finite() && factor > 0.0) {
        return Err(family::missing("rope_scaling.factor"));
    }
    let longest = ((length as f64 * factor) as u64).min(LONGEST);
    Ok((by_itself.unwrap_or(longest), longest))
}

/// The context that vLLM before 0.30.0 derived with YaRN: its factor times the original positions, whatever
/// `max_position_embeddings` says (pull request 56446 of September 2026 ended that).
pub(super) fn stretched(text: &Value) -> Option<u64> {
    let (_, rope) = settings(text).into_iter().find(|(_, r)| kind(r) == "yarn")?;
    let original = rope.get("original_max_position_embeddings").and_then(number)?;
    let factor = rope.get("factor").and_then(Value::as_f64).filter(|f| f.is_finite() && *f > 0.0)?;
    Some(((original as f64 * factor) as u64).min(LONGEST)).filter(|n| *n > 0)
}

/// Positions that a table of this kind holds.
fn positions(rope: Option<&Value>, max_position: u64) -> u64 {
    let Some(rope) = rope else { return max_position };
    let factor =
        rope.get("factor").and_then(Value::as_f64).filter(|f| f.is_finite() && *f > 0.0).unwrap_or(1.0);
    let original = rope.get("original_max_position_embeddings").and_then(number);
    match kind(rope) {
        // The table covers the scaled context (vLLM layers/rotary_embedding/*_rope.py).
        "yarn" | "deepseek_yarn" => (original.unwrap_or(max_position) as f64 * factor) as u64,
        "linear" => (max_position as f64 * factor) as u64,
        // One table for short and one for long contexts, end to end.
        "longrope" | "su" => max_position.saturating_add(original.unwrap_or(0)),
        _ => max_position,
    }
}

/// Rotated elements of a head.
fn rotated(model: &Model, rope: Option<&Value>, head_dim: u64) -> u64 {
    let share = rope
        .and_then(|r| r.get("partial_rotary_factor"))
        .or_else(|| model.text.get("partial_rotary_factor"))
        .or_else(|| model.text.get("rotary_pct"))
        .and_then(Value::as_f64)
        .filter(|f| f.is_finite() && (0.0..=1.0).contains(f));
    if let Some(dim) = model.text.get("rotary_dim").and_then(number) {
        return dim.min(head_dim);
    }
    // Gemma 4's proportional kind keeps unrotated pairs as zeros, so the table is whole.
    if rope.is_some_and(|r| kind(r) == "proportional") {
        return head_dim;
    }
    // vLLM models/chatglm.py rotates half of a head, whatever the config says; glm.py, glm4.py and glm4_moe.py where it says
    // nothing.
    let share = match model.architecture.as_str() {
        a if a.starts_with("ChatGLM") => Some(0.5),
        a if a.starts_with("Glm") => share.or(Some(0.5)),
        _ => share,
    };
    share.map_or(head_dim, |s| (head_dim as f64 * s) as u64)
}

/// The tables that a model builds, one for each distinct setting.
pub(super) fn tables(model: &Model) -> Vec<RotaryTable> {
    let element = 0;
    let ropes = settings(&model.text);
    let first = ropes.first().map(|(_, r)| *r);
    let table = |rope: Option<&Value>, width: u64, element_bytes: u64, count: u64| RotaryTable {
        positions: positions(rope, model.max_position),
        width,
        element_bytes,
        count,
    };
    match model.family {
        // vLLM builds Nemotron-H and Kimi K3 without rotation, and OPT has learned positions.
        Family::NemotronH | Family::Opt => Vec::new(),
        _ if model.traits.positions != Positions::Rotary => Vec::new(),
        // "nope" and nothing at all are no rotation (vLLM models/granitemoehybrid.py).
        _ if model.architecture == "GraniteMoeHybridForCausalLM"
            && model.text.get("position_embedding_type").and_then(Value::as_str) != Some("rope") =>
        {
            Vec::new()
        }
        // Transformers computes the angles of each step anew.
        _ if model.traits.backend == ModelCode::Transformers => Vec::new(),
        _ if model.layers.iter().all(|l| l.attention.is_state()) => Vec::new(),
        Family::KimiLinear if model.text.get("mla_use_nope").and_then(Value::as_bool) == Some(true) => {
            Vec::new()
        }
        Family::Deepseek | Family::Longcat | Family::KimiLinear | Family::Expanded => {
            deepseek(model, first, table)
        }
        Family::DeepseekV4 => {
            let width = model.text.get("qk_rope_head_dim").and_then(number).unwrap_or(0);
            let plain =
                model.layers.iter().any(|l| matches!(l.attention, Attention::Compressed(c) if c.ratio == 0));
            let packed =
                model.layers.iter().any(|l| matches!(l.attention, Attention::Compressed(c) if c.ratio > 0));
            // Layers that compress rotate with `compress_rope_theta`, and they alone are scaled (vLLM
            // models/deepseek_v4/common/rope.py).
            let named = ropes.iter().find(|(name, _)| *name == "compress").map(|(_, rope)| *rope);
            let mut scaled = table(None, width, 4, 1);
            scaled.positions = deepseek_positions(named.or(first)).unwrap_or(model.max_position);
            let mut out = Vec::new();
            out.extend(plain.then(|| table(None, width, 4, 1)));
            out.extend(packed.then_some(scaled));
            out
        }
        Family::Gemma4 | Family::Gemma | Family::Gemma3n => by_reach(model, &ropes, table),
        _ if model.architecture == "LagunaForCausalLM" => by_reach(model, &ropes, table),
        Family::MimoV2 => {
            let slides = has(model, |r| matches!(r, Reach::Sliding(_)));
            let full = has(model, |r| r == Reach::Full);
            vec![table(
                first,
                rotated(model, first, model.head_size()),
                element,
                u64::from(slides) + u64::from(full),
            )]
        }
        // Layers that see everything do not rotate; the others' table is in 32 bits (vLLM models/beam/nvidia/attention.py).
        _ if model.architecture == "BeamForCausalLM" => {
            let slides = has(model, |r| matches!(r, Reach::Sliding(_)));
            vec![table(first, rotated(model, first, model.head_size()), 4, u64::from(slides))]
        }
        // vLLM models/gpt_oss.py asks for a table in 32 bits.
        Family::GptOss => vec![table(first, rotated(model, first, model.head_size()), 4, 1)],
        _ => vec![table(first, rotated(model, first, model.head_size()), element, 1)],
    }
}

fn has(model: &Model, f: impl Fn(Reach) -> bool) -> bool {
    model.layers.iter().any(|l| matches!(l.attention, Attention::Gqa(g) if f(g.reach)))
}

fn deepseek(
    model: &Model,
    rope: Option<&Value>,
    table: impl Fn(Option<&Value>, u64, u64, u64) -> RotaryTable,
) -> Vec<RotaryTable> {
    let width = model.text.get("qk_rope_head_dim").and_then(number).unwrap_or(0);
    let sparse = model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(m) if m.indexer.is_some()));
    let scaled = rope.is_some_and(|r| kind(r) != "default");
    let interleaved = model.text.get("indexer_rope_interleave").and_then(Value::as_bool) == Some(true);
    // The selector rotates with its own layout of pairs unless it shares the main one.
    let count = if sparse && !interleaved { 2 } else { 1 };
    // FlashInfer's kernel for scaled tables wants 32 bits; only the sparse path uses it.
    let element = if sparse && scaled { 4 } else { 0 };
    let mut made = table(rope, width, element, count);
    // Whatever kind of scaling the config names, the engine takes DeepSeek's own, whose table covers the scaled context
    // (vLLM models/deepseek_v2.py: `rope_type` that is not "default" becomes "deepseek_yarn").
    if let Some(positions) = deepseek_positions(rope).filter(|_| scales_its_own_way(model.family)) {
        made.positions = positions;
    }
    vec![made]
}

/// Positions of DeepSeek's own scaling, which stands for any that is not "default".
fn deepseek_positions(rope: Option<&Value>) -> Option<u64> {
    let rope = rope.filter(|r| kind(r) != "default")?;
    let of = |key: &str| rope.get(key).and_then(Value::as_f64).filter(|n| n.is_finite() && *n > 0.0);
    Some((of("original_max_position_embeddings")? * of("factor")?).min(LONGEST as f64) as u64)
}

/// Gemma: windows and full layers have a setting each, and each width of heads has a table of it.
fn by_reach(
    model: &Model,
    ropes: &[(&str, &Value)],
    table: impl Fn(Option<&Value>, u64, u64, u64) -> RotaryTable,
) -> Vec<RotaryTable> {
    let mut out = Vec::new();
    for (name, slides) in [("full_attention", false), ("sliding_attention", true)] {
        let heads: BTreeSet<u64> = model
            .layers
            .iter()
            .filter_map(|l| match l.attention {
                Attention::Gqa(g) if matches!(g.reach, Reach::Sliding(_)) == slides => Some(g.head_dim),
                _ => None,
            })
            .collect();
        let rope = ropes.iter().find(|(n, _)| *n == name).map(|(_, r)| *r);
        // Without settings of its own, a full layer takes the only one, and a window the default (Gemma 3).
        let rope = rope.or_else(|| ropes.first().filter(|(n, _)| n.is_empty() && !slides).map(|(_, r)| *r));
        out.extend(heads.into_iter().map(|head| table(rope, rotated(model, rope, head), 0, 1)));
    }
    if model.traits.name.starts_with("Gemma2") {
        out.truncate(1);
    }
    out
}
