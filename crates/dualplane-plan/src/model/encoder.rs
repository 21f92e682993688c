//! Encoders in front of the language model.

use serde_json::Value;

use super::Encoder;
use super::keys::Keys;

/// The towers of Phi-4-multimodal, which its config tells only in part: vLLM models/phi4mm.py writes that of pictures down by
/// itself, and takes the last layer but one of it where `img_processor` says nothing.
mod phi4 {
    use serde_json::{Value, json};

    use super::Encoder;
    use crate::model::keys::{Keys, number};

    /// What the config lays out in front of the language model, if it is one of these.
    fn laid_out(config: &Value) -> Option<&Value> {
        config.get("embd_layer").filter(|v| v.is_object())
    }

    pub(super) fn pictures(config: &Value) -> Option<Encoder> {
        laid_out(config)?.get("image_embd_layer")?;
        let layers = 27_u64;
        let asked = config.pointer("/img_processor/layer_idx").and_then(Value::as_i64).unwrap_or(-2);
        let built = if asked < 0 {
            layers.saturating_add(1).saturating_sub(asked.unsigned_abs())
        } else {
            asked.unsigned_abs().saturating_add(1).min(layers)
        };
        Some(Encoder {
            family: "phi4mm_image".into(),
            layers: built,
            hidden_size: 1152,
            intermediate_size: 4304,
            heads: 16,
            out_hidden_size: 0,
            raw: json!({"image_size": 448, "patch_size": 14}),
        })
    }

    pub(super) fn sound(config: &Value) -> Option<Encoder> {
        laid_out(config)?.get("audio_embd_layer")?;
        let raw = config.pointer("/audio_processor/config").filter(|v| v.is_object())?;
        let get = |name: &str| raw.get(name).and_then(number).unwrap_or(0);
        Some(Encoder {
            family: "phi4mm_audio".into(),
            layers: get("num_blocks"),
            hidden_size: get("attention_dim"),
            intermediate_size: get("linear_units"),
            heads: Keys::new(raw).u64(&["attention_heads"]).unwrap_or(16),
            out_hidden_size: 0,
            raw: raw.clone(),
        })
    }
}

/// The encoder of sound that a config describes.
pub(super) fn read_sound(config: &Value) -> Option<Encoder> {
    if let Some(own) = phi4::sound(config) {
        return Some(own);
    }
    // Whisper's stands beside its decoder.
    let beside = config.get("encoder_layers").map(|_| config);
    let raw = ["audio_config", "encoder_config"].iter().find_map(|k| config.get(k)).or(beside);
    let raw = raw.filter(|v| v.is_object())?;
    let keys = Keys::new(raw);
    let get = |names: &[&'static str]| keys.u64(names).unwrap_or(0);
    let hidden_size = get(&["hidden_size", "d_model", "hidden_dim"]);
    let times = get(&["feedforward_mult"]).saturating_mul(hidden_size);
    Some(Encoder {
        family: keys.str("model_type").unwrap_or("sound").to_owned(),
        layers: get(&["encoder_layers", "num_hidden_layers", "num_layers"]),
        hidden_size,
        intermediate_size: keys.u64(&["intermediate_size", "encoder_ffn_dim"]).unwrap_or(times),
        heads: get(&["num_attention_heads", "encoder_attention_heads", "num_heads"]),
        out_hidden_size: get(&["output_dim"]),
        raw: raw.clone(),
    })
}

/// The encoder that a config describes.
pub(super) fn read(config: &Value, architecture: &str) -> Option<Encoder> {
    if let Some(own) = phi4::pictures(config) {
        return Some(own);
    }
    let default = Value::Null;
    let raw = match config.get("vision_config").filter(|v| v.is_object()) {
        Some(v) => v,
        // transformers fills in Llama 4's encoder where the config leaves it out.
        None if architecture == "Llama4ForConditionalGeneration" => &default,
        None => return None,
    };
    let keys = Keys::new(raw);
    let get = |names: &[&'static str], fallback: u64| keys.u64(names).unwrap_or(fallback);
    let llama4 = architecture.starts_with("Llama4");
    // Qwen2-VL's `hidden_size` is the language model's.
    let width: &[&'static str] =
        if keys.u64(&["embed_dim"]).is_some() { &["embed_dim"] } else { &["hidden_size", "vt_hidden_size"] };
    let by_ratio = get(&["mlp_ratio"], 0).saturating_mul(get(width, 0));
    Some(Encoder {
        family: keys
            .str("model_type")
            .unwrap_or(if llama4 { "llama4_vision_model" } else { architecture })
            .to_owned(),
        layers: get(&["depth", "num_hidden_layers", "vt_num_hidden_layers"], if llama4 { 34 } else { 0 }),
        hidden_size: get(width, if llama4 { 768 } else { 0 }),
        intermediate_size: get(
            &["intermediate_size", "vt_intermediate_size"],
            if llama4 { 5632 } else { by_ratio },
        ),
        heads: get(
            &["num_heads", "num_attention_heads", "vt_num_attention_heads"],
            if llama4 { 16 } else { 0 },
        ),
        out_hidden_size: get(&["out_hidden_size", "text_hidden_size", "hidden_size"], 0),
        raw: raw.clone(),
    })
}
