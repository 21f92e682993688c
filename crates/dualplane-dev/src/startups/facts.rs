//! Facts of the models of measured start-ups: a stored configuration, a catalogued one, or one made of the fields.

use std::fs;
use std::path::PathBuf;

use dualplane_plan::catalogue;
use serde_json::{Map, Value, json};

/// A configuration for one row.
pub(super) struct Config {
    pub(super) text: String,
    pub(super) hf_quant_config: Option<String>,
    /// Only the layers' caches are known: weights and activations say nothing.
    pub(super) caches_only: bool,
    /// Its quantisation is told by its name only.
    pub(super) named: bool,
}

/// The configuration of `model`: the stored one that its facts name, one made of their fields, the catalogue's, or one
/// made of its caches only.
pub(super) fn config(model: &str, facts: Option<&Value>, dirs: &[PathBuf]) -> Option<Config> {
    let whole = |text, hf_quant_config, named| Config { text, hf_quant_config, caches_only: false, named };
    if let Some((text, hf_quant_config)) = facts.and_then(|f| fields(f, dirs)) {
        return Some(whole(text, hf_quant_config, false));
    }
    let of = facts.and_then(|f| f.get("config_of")).and_then(Value::as_str);
    let found = [of, Some(model)].into_iter().flatten().find_map(|id| Some((id, catalogue::find(id)?)));
    let (id, entry) = found.map_or((model, None), |(id, e)| (id, Some(e)));
    if let Some(s) = catalogue::as_named(id, entry) {
        return Some(whole(s.config, s.hf_quant_config.map(str::to_owned), true));
    }
    if let Some(e) = entry {
        let hf_quant_config = e.hf_quant_config().map(str::to_owned);
        return Some(whole(e.config().to_owned(), hf_quant_config, catalogue::is_copy(id, e)));
    }
    let text = of_caches(facts?.get("kv_layers")?.as_array()?)?;
    Some(Config { text, hf_quant_config: None, caches_only: true, named: false })
}

/// A decoder with these caches; its width and vocabulary are made up.
fn of_caches(kinds: &[Value]) -> Option<String> {
    let num = |v: &Value, key: &str| v.get(key).and_then(Value::as_u64);
    let mut names: Vec<&str> = Vec::new();
    let mut made = Map::new();
    let mut shape = None;
    for kind in kinds {
        let name = match kind.get("kind")?.as_str()? {
            "full" => "full_attention",
            "swa" => {
                made.insert("sliding_window".into(), json!(num(kind, "window")?));
                "sliding_attention"
            }
            "state" => {
                // Convolutions over two keys and a value for each state of value x key; heads of 128, as all that are known.
                let (ssm, conv) = (num(kind, "ssm_elems")?, num(kind, "conv_elems")?);
                let v_heads = ssm / (128 * 128);
                let k_heads = (conv / 3).checked_sub(v_heads * 128)? / 256;
                if v_heads == 0 || num(kind, "ssm_bytes")? != 4 {
                    return None;
                }
                made.insert("linear_num_value_heads".into(), json!(v_heads));
                made.insert("linear_num_key_heads".into(), json!(k_heads));
                for key in ["linear_key_head_dim", "linear_value_head_dim"] {
                    made.insert(key.into(), json!(128));
                }
                made.insert("linear_conv_kernel_dim".into(), json!(4));
                made.insert("mamba_ssm_dtype".into(), json!("float32"));
                "linear_attention"
            }
            _ => return None,
        };
        names.extend((0..num(kind, "n")?.min(256)).map(|_| name));
        if name != "linear_attention" {
            let own = (num(kind, "kv_heads")?, num(kind, "head_dim")?);
            if *shape.get_or_insert(own) != own {
                return None;
            }
        }
    }
    let (heads, head_dim) = shape?;
    let hybrid = made.contains_key("linear_num_value_heads");
    made.insert(
        "architectures".into(),
        json!([if hybrid { "Qwen3NextForCausalLM" } else { "LlamaForCausalLM" }]),
    );
    for (key, value) in [
        ("num_hidden_layers", names.len() as u64),
        ("num_attention_heads", heads),
        ("num_key_value_heads", heads),
        ("head_dim", head_dim),
        ("hidden_size", heads * head_dim),
        ("intermediate_size", head_dim),
        ("vocab_size", head_dim),
        ("max_position_embeddings", 1 << 20),
    ] {
        made.insert(key.into(), json!(value));
    }
    made.insert("torch_dtype".into(), json!("bfloat16"));
    made.insert("layer_types".into(), json!(names));
    Some(Value::Object(made).to_string())
}

/// The stored configuration that the facts name, else one made of their fields.
fn fields(facts: &Value, dirs: &[PathBuf]) -> Option<(String, Option<String>)> {
    let source = facts.get("source").and_then(Value::as_str).unwrap_or_default();
    let name = source.rsplit(['/', ':']).next().unwrap_or_default();
    let file = |name: &str| dirs.iter().find_map(|d| fs::read_to_string(d.join(name)).ok());
    if name.ends_with("_config.json")
        && let Some(text) = file(name)
    {
        return Some((text, file(&name.replace("_config.json", "_hf_quant_config.json"))));
    }
    let architecture = facts.get("architecture").and_then(Value::as_str)?;
    let mut made = Map::new();
    for (key, value) in facts.as_object()? {
        let skip =
            matches!(key.as_str(), "first_k_dense" | "kv_layers" | "linear_attn" | "layer_types_summary");
        if !value.is_null() && !skip {
            made.insert(key.clone(), value.clone());
        }
    }
    if let Some(linear) = facts.get("linear_attn").and_then(Value::as_object) {
        made.extend(linear.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    let summary = facts.get("quantization_config_summary").filter(|q| q.is_object());
    if let Some(q) = summary {
        made.insert("quantization_config".into(), q.clone());
    }
    made.remove("vision_tower");
    made.insert("architectures".into(), json!([architecture]));
    if architecture == "OPTForCausalLM" {
        made.insert("tie_word_embeddings".into(), json!(true));
    }
    Some((Value::Object(made).to_string(), None))
}
