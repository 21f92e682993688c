//! Encoders in front of the language model.

use serde_json::Value;

use super::Encoder;
use super::keys::Keys;

/// The encoder of sound that a config describes.
pub(super) fn read_sound(config: &Value) -> Option<Encoder> {
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
