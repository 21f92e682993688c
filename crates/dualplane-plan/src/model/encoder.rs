//! Encoders in front of the language model.

use serde_json::Value;

use super::Encoder;
use super::keys::Keys;

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
    Some(Encoder {
        family: keys
            .str("model_type")
            .unwrap_or(if llama4 { "llama4_vision_model" } else { architecture })
            .to_owned(),
        layers: get(&["depth", "num_hidden_layers", "vt_num_hidden_layers"], if llama4 { 34 } else { 0 }),
        hidden_size: get(&["hidden_size", "vt_hidden_size", "embed_dim"], if llama4 { 768 } else { 0 }),
        intermediate_size: get(&["intermediate_size", "vt_intermediate_size"], if llama4 { 5632 } else { 0 }),
        heads: get(
            &["num_heads", "num_attention_heads", "vt_num_attention_heads"],
            if llama4 { 16 } else { 0 },
        ),
        out_hidden_size: get(&["out_hidden_size", "text_hidden_size"], 0),
        raw: raw.clone(),
    })
}
