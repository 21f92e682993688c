//! Where the language model stands in a config, and what its names stand for.

use serde_json::Value;

use super::family;

/// Why a config is an estimate, where it is one.
pub(super) fn unknown(config: &Value) -> Option<String> {
    let architecture = config.pointer("/architectures/0")?.as_str()?;
    let text = language_model(config).unwrap_or(config);
    recognise(architecture, config, text).1
}

/// Objects that hold the language model's configuration.
const NESTED: &[&str] = &["text_config", "llm_config", "language_config"];

/// The language model's configuration, where it stands in an object of its own; that of models that also speak is one deeper.
pub(super) fn language_model(config: &Value) -> Option<&Value> {
    let of = |v: &'_ Value| -> Option<&'static str> {
        NESTED.iter().find(|k| v.get(**k).is_some_and(Value::is_object)).copied()
    };
    let outer = thinker(config);
    outer.get(of(outer)?)
}

/// Of models that also speak, the part that reads and thinks; the engine serves no other.
pub(super) fn thinker(config: &Value) -> &Value {
    config.get("thinker_config").filter(|v| v.is_object()).unwrap_or(config)
}

/// The same with the keys of DBRX's objects for attention and experts beside the others.
pub(super) fn flattened(config: &Value) -> Option<Value> {
    let mut flat = config.as_object()?.clone();
    let parts: Vec<Value> = ["attn_config", "ffn_config"].iter().filter_map(|k| flat.remove(*k)).collect();
    if parts.iter().filter(|p| p.is_object()).count() < 2 {
        return None;
    }
    for (key, value) in parts.iter().filter_map(Value::as_object).flatten() {
        flat.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Some(Value::Object(flat))
}

/// What the names of a config stand for, and why it is an estimate where they are not known.
pub(super) fn recognise(
    architecture: &str,
    config: &Value,
    text: &Value,
) -> (&'static family::Traits, Option<String>) {
    let kind = |v: &Value| v.get("model_type").and_then(Value::as_str).map(str::to_owned);
    // Written as a number or as a text.
    let version = match config.get("version") {
        Some(Value::Number(n)) => format!("{:.1}", n.as_f64().unwrap_or_default()),
        Some(Value::String(s)) => s.clone(),
        _ => String::new(),
    };
    let of_text = || {
        if let Some(by_version) = family::traits_of_version(architecture, &version) {
            return Some(by_version);
        }
        let named = text.pointer("/architectures/0").and_then(Value::as_str).and_then(family::traits);
        named.or_else(|| family::traits_of_type(&kind(text)?)).filter(|t| !t.inner)
    };
    let known = match family::traits(architecture) {
        Some(t) if t.inner => of_text().ok_or_else(|| format!("the language model of {architecture}")),
        Some(t) => Ok(t),
        None => Err(format!("architecture {architecture}")),
    };
    let unknown_type = [config, text].into_iter().filter_map(kind).find(|k| !family::knows_type(k));
    match (known, unknown_type) {
        (Ok(t), None) => (t, None),
        (Ok(t), Some(k)) => (t, Some(format!("model_type {k} of {architecture}"))),
        (Err(what), _) => {
            let latent =
                ["kv_lora_rank", "qk_rope_head_dim"].iter().all(|k| text.get(k).is_some_and(Value::is_u64));
            let guess = if latent { &family::GUESS_LATENT } else { &family::GUESS };
            (of_text().unwrap_or(guess), Some(what))
        }
    }
}
