//! Another config of the same architecture, and another launch, drawn with a seed.
//!
//! What is drawn is what models differ in: counts, widths, switches, kinds of layers, positions, the encoder. Some draws are
//! configs that the engine rejects; that is an answer too.

use serde_json::{Map, Value, json};

use crate::chance::Rng;

/// Objects of a config that describe a language model.
const TEXTS: &[&str] = &["text_config", "llm_config", "language_config"];
/// Objects that describe an encoder.
const TOWERS: &[&str] = &["vision_config", "audio_config", "encoder_config"];

/// Lists of layers by their place.
const PLACES: &[&str] = &["hybrid_layer_ids", "full_attn_idxs", "mlp_only_layers"];

/// Lists of kinds, which the classes of configurations want as long as there are layers.
const KINDS: &[&str] = &["layer_types", "mlp_layer_types"];

/// Spellings of the number of layers, of heads and of the width.
const LAYERS: &[&str] = &["num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"];
const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads"];
const KV_HEADS: &[&str] = &["num_key_value_heads", "num_kv_heads", "multi_query_group_num"];
const WIDTH: &[&str] = &["hidden_size", "n_embd", "d_model"];

/// Values that a key of a language model may take.
const NUMBERS: &[(&str, &[u64])] = &[
    ("intermediate_size", &[2048, 3584, 5632, 8192, 11_008, 14_336, 18_944]),
    ("ffn_hidden_size", &[4096, 11_008, 13_696]),
    ("ffn_dim", &[2048, 4096, 8192]),
    ("n_inner", &[4096, 8192]),
    ("vocab_size", &[32_000, 50_257, 65_536, 100_352, 128_256, 151_936, 256_000]),
    ("max_position_embeddings", &[2048, 4096, 8192, 32_768, 131_072]),
    ("sliding_window", &[512, 1024, 4096]),
    ("num_experts", &[8, 16, 32, 64, 128]),
    ("num_local_experts", &[8, 16, 32, 64, 128]),
    ("n_routed_experts", &[8, 16, 32, 64, 128]),
    ("moe_num_experts", &[8, 16, 32, 64]),
    ("moe_intermediate_size", &[512, 768, 1024, 1408, 2048]),
    ("shared_expert_intermediate_size", &[512, 1024, 5632]),
    ("shared_intermediate_size", &[512, 1024, 2048]),
    ("n_shared_experts", &[1, 2]),
    ("first_k_dense_replace", &[0, 1, 3]),
    ("q_lora_rank", &[512, 768, 1536]),
    ("kv_lora_rank", &[256, 512]),
    ("v_head_dim", &[64, 128]),
    ("qk_nope_head_dim", &[64, 128]),
    ("mamba_d_state", &[64, 128, 256]),
    ("ssm_state_size", &[64, 128]),
    ("state_size", &[16, 64, 128]),
    ("linear_num_value_heads", &[16, 32, 64]),
    ("linear_num_key_heads", &[8, 16]),
    ("conv_L_cache", &[3, 4]),
    ("num_kv_shared_layers", &[0, 4]),
];

/// Values that a key of an encoder may take.
const OF_TOWERS: &[(&str, &[u64])] = &[
    ("num_hidden_layers", &[6, 12, 24, 27]),
    ("depth", &[8, 12, 24, 32]),
    ("intermediate_size", &[2048, 3072, 4304]),
    ("image_size", &[224, 336, 448, 896]),
    ("patch_size", &[14, 16]),
];

/// Switches of a language model.
const SWITCHES: &[&str] =
    &["tie_word_embeddings", "attention_bias", "mlp_bias", "use_sliding_window", "use_qk_norm", "qkv_bias"];

fn one_of<T: Copy>(rng: &mut Rng, list: &[T]) -> Option<T> {
    list.get(rng.below(list.len())).copied()
}

fn chance(rng: &mut Rng, share: f64) -> bool {
    rng.share() < share
}

/// Another config.
pub(super) fn config(seed: &Value, rng: &mut Rng) -> Value {
    let mut config = seed.clone();
    let Some(top) = config.as_object_mut() else { return config };
    match TEXTS.iter().find(|k| top.get(**k).is_some_and(Value::is_object)) {
        Some(key) => {
            if let Some(text) = top.get_mut(*key).and_then(Value::as_object_mut) {
                language(text, rng);
            }
            if chance(rng, 0.15) {
                flip(top, "tie_word_embeddings");
            }
        }
        None => language(top, rng),
    }
    for key in TOWERS {
        if let Some(tower) = top.get_mut(*key).and_then(Value::as_object_mut) {
            for (name, values) in OF_TOWERS {
                number(tower, name, values, 0.25, rng);
            }
        }
    }
    // Nobody packs a head that is the embedding: what is quantised keeps its own.
    if seed.get("quantization_config").is_some() {
        let places = TEXTS.iter().map(|t| format!("/{t}/tie_word_embeddings"));
        for place in places.chain(["/tie_word_embeddings".to_owned()]) {
            if let (Some(own), Some(drawn)) = (seed.pointer(&place), config.pointer_mut(&place)) {
                *drawn = own.clone();
            }
        }
    }
    config
}

fn language(text: &mut Map<String, Value>, rng: &mut Rng) {
    layers(text, rng);
    heads(text, rng);
    for (name, values) in NUMBERS {
        number(text, name, values, 0.25, rng);
    }
    // A token beyond the vocabulary is no model.
    if let (Some(words), Some(pad)) =
        (text.get("vocab_size").and_then(Value::as_u64), text.get("pad_token_id").and_then(Value::as_u64))
    {
        text.insert("pad_token_id".into(), json!(pad.min(words.saturating_sub(1))));
    }
    for name in SWITCHES {
        if chance(rng, 0.15) {
            flip(text, name);
        }
    }
    if chance(rng, 0.15) {
        positions(text, rng);
    }
}

/// Replaces a number where there is one.
fn number(object: &mut Map<String, Value>, name: &str, values: &[u64], share: f64, rng: &mut Rng) {
    if object.get(name).is_some_and(Value::is_u64)
        && chance(rng, share)
        && let Some(n) = one_of(rng, values)
    {
        object.insert(name.into(), json!(n));
    }
}

fn flip(object: &mut Map<String, Value>, name: &str) {
    if let Some(Value::Bool(b)) = object.get_mut(name) {
        *b = !*b;
    }
}

/// The first of these keys that holds a number.
fn held<'a>(object: &Map<String, Value>, names: &[&'a str]) -> Option<(&'a str, u64)> {
    names.iter().find_map(|k| Some((*k, object.get(*k)?.as_u64()?)))
}

/// Another number of layers; what lists one entry a layer follows it.
fn layers(text: &mut Map<String, Value>, rng: &mut Rng) {
    let Some((key, old)) = held(text, LAYERS) else { return };
    if !chance(rng, 0.7) {
        return;
    }
    let Some(new) = one_of(rng, &[2_u64, 4, 7, 8, 12, 15, 18, 24, 30, 36]) else { return };
    text.insert(key.into(), json!(new));
    // More layers that share a cache than layers are no model.
    if let Some(shared) = text.get("num_kv_shared_layers").and_then(Value::as_u64) {
        text.insert("num_kv_shared_layers".into(), json!(shared.min(new / 2)));
    }
    // What is said of single layers ends with them.
    if let Some(Value::Object(single)) = text.get_mut("per_layer_config") {
        single.retain(|k, _| k.parse::<u64>().map_or(true, |i| i < new));
    }
    for (key, value) in text.iter_mut() {
        let Value::Array(list) = value else { continue };
        if PLACES.contains(&key.as_str()) {
            list.retain(|v| v.as_u64().is_some_and(|i| i < new));
        } else if list.len() as u64 == old || KINDS.contains(&key.as_str()) && !list.is_empty() {
            let repeated = list.iter().cycle().take(new as usize).cloned().collect();
            *list = repeated;
        }
    }
}

/// Another number of heads, of KV heads, another width of heads and of the model, so that they divide each other.
fn heads(text: &mut Map<String, Value>, rng: &mut Rng) {
    let (Some((heads_key, mut heads)), Some((width_key, width))) = (held(text, HEADS), held(text, WIDTH))
    else {
        return;
    };
    let free = text.get("head_dim").is_some_and(Value::is_u64);
    if chance(rng, 0.4)
        && let Some(n) = one_of(rng, &[8_u64, 12, 16, 32, 40, 64])
    {
        heads = n;
        text.insert(heads_key.into(), json!(n));
        let per_head = one_of(rng, &[64_u64, 96, 128]).unwrap_or(64);
        let wide = if free { one_of(rng, &[1024_u64, 2048, 3072, 4096, 5120]) } else { Some(n * per_head) };
        // Some classes want a width that the heads divide, whatever a head holds.
        let wide = wide.unwrap_or(width).next_multiple_of(n * 64);
        text.insert(width_key.into(), json!(wide));
    }
    // Where a switch says the number, its class derives it.
    let derived = text.contains_key("multi_query");
    if let Some((key, old)) = held(text, KV_HEADS).filter(|_| !derived) {
        let wanted = if chance(rng, 0.4) { one_of(rng, &[1_u64, 2, 4, 8, heads]) } else { Some(old) };
        let fits = wanted.filter(|n| heads.is_multiple_of(*n)).unwrap_or(heads);
        text.insert(key.into(), json!(fits));
    }
    // Kernels of compressed caches take one size.
    if free
        && !text.contains_key("compress_ratios")
        && chance(rng, 0.25)
        && let Some(n) = one_of(rng, &[64_u64, 80, 96, 128, 256])
    {
        text.insert("head_dim".into(), json!(n));
    }
}

/// Another scaling of positions.
fn positions(text: &mut Map<String, Value>, rng: &mut Rng) {
    let key = if text.get("rope_parameters").is_some() { "rope_parameters" } else { "rope_scaling" };
    let Some(old) = text.get(key) else { return };
    // One setting for each kind of layer, or sections of a picture's positions, stay as they are.
    if old.as_object().is_some_and(|o| o.values().any(Value::is_object) || o.contains_key("mrope_section")) {
        return;
    }
    let theta = old.get("rope_theta").cloned().unwrap_or(json!(10_000.0));
    let rope = match rng.below(4) {
        0 => json!({"rope_type": "linear", "factor": 2.0}),
        1 => json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}),
        2 => json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}),
        _ => json!({"rope_type": "dynamic", "factor": 2.0}),
    };
    let mut rope = rope;
    if let Some(o) = rope.as_object_mut() {
        o.insert("rope_theta".into(), theta);
        if let Some(share) = old.get("partial_rotary_factor") {
            o.insert("partial_rotary_factor".into(), share.clone());
        }
    }
    text.insert(key.into(), rope);
}

/// Cards that launches are drawn for: capability, name and GiB, which choose kernels and defaults. One for all mutants of a
/// seed: the oracle starts a server for each.
const CARDS: &[([u64; 2], &str, f64)] = &[
    ([9, 0], "NVIDIA H100 80GB HBM3", 79.19),
    ([8, 0], "NVIDIA A100-SXM4-80GB", 79.25),
    ([10, 0], "NVIDIA B200", 178.35),
    ([8, 9], "NVIDIA L40S", 44.42),
    ([7, 5], "Tesla T4", 14.56),
    ([8, 0], "NVIDIA A100-SXM4-40GB", 39.49),
    ([8, 9], "NVIDIA L4", 22.03),
    ([9, 0], "NVIDIA H200", 139.81),
    ([12, 0], "NVIDIA GeForce RTX 5090", 31.36),
];

/// A launch, as the oracle asks for it.
pub(super) fn request(seed: u64, rng: &mut Rng) -> Map<String, Value> {
    let gib = 8 + rng.below(56) as u64;
    let pick = |rng: &mut Rng, list: &[u64]| one_of(rng, list).unwrap_or(1);
    let card = usize::try_from(seed % CARDS.len() as u64).unwrap_or(0);
    let (capability, name, total) =
        CARDS.get(card).copied().unwrap_or(([9, 0], "NVIDIA H100 80GB HBM3", 79.19));
    let kv = if chance(rng, 0.25) { "fp8" } else { "auto" };
    let length = one_of(rng, &[None, None, Some(2048_u64), Some(4096), Some(8192), Some(16_384)]).flatten();
    let request = json!({
        "tp": pick(rng, &[1, 1, 1, 2, 2, 4, 8]),
        "max_model_len": length,
        // Left out, they are the card's.
        "max_num_seqs": one_of(rng, &[None, Some(64_u64), Some(256)]).flatten(),
        "max_num_batched_tokens": one_of(rng, &[None, Some(2048_u64), Some(8192)]).flatten(),
        "kv_cache_dtype": kv,
        "capability": capability,
        "device_name": name,
        "device_total_bytes": (total * f64::from(1 << 30)) as u64,
        "available_kv_bytes": gib << 30,
        "enable_prefix_caching": if chance(rng, 0.2) { Some(false) } else { None },
    });
    let Value::Object(map) = request else { return Map::new() };
    map.into_iter().filter(|(_, v)| !v.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed() -> Value {
        json!({"num_hidden_layers": 4, "layer_types": ["a", "b", "a", "b"], "num_attention_heads": 32,
            "num_key_value_heads": 8, "hidden_size": 4096, "head_dim": 128, "vocab_size": 32000})
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |s| config(&seed(), &mut Rng::of(s, "a", 0));
        assert_eq!(draw(1), draw(1));
        assert!((2..20).any(|s| draw(s) != draw(1)));
    }

    #[test]
    fn what_is_drawn_hangs_together() {
        for s in 0..200 {
            let c = config(&seed(), &mut Rng::of(s, "a", 0));
            let n = |k: &str| c.get(k).and_then(Value::as_u64).unwrap();
            assert_eq!(c["layer_types"].as_array().map(Vec::len), Some(n("num_hidden_layers") as usize));
            assert_eq!(n("num_attention_heads") % n("num_key_value_heads"), 0);
        }
    }
}
