//! Configurations that end vLLM's start before any memory is taken: what transformers' classes look at while they read the
//! file, and what the code of rotary embeddings and of attention asks for.
//!
//! What `--hf-overrides` sets is put in after a class has looked: it may contradict the file, but the code still wants its
//! keys.

use dualplane_base::Version;
use serde_json::Value;

use super::family::ModelCode;
use super::keys::number;
use super::layer::{Attention, FeedForward, Layer};
use super::rotary::{kind, settings};
use super::{Family, Model};
use crate::outcome::PlanError;

/// `model_type`s whose classes want a hidden size that the heads divide.
const HEADS_DIVIDE_WIDTH: &[&str] = include!(concat!(env!("OUT_DIR"), "/heads_divide_width.rs"));

/// The first release that was read with classes that look at the file (its requirement: transformers 5.16.1).
const CLASSES_CHECK: Version = Version(0, 32, 0);

/// What a rotary embedding of a kind is made from (vLLM layers/rotary_embedding/__init__.py; transformers
/// modeling_rope_utils.py `_validate_*_rope_parameters`).
fn asks_for(kind: &str) -> &'static [&'static str] {
    match kind {
        "linear" | "dynamic" | "ntk" => &["factor"],
        "yarn" => &["factor", ORIGINAL],
        "llama3" => &["factor", "low_freq_factor", "high_freq_factor", ORIGINAL],
        "longrope" | "su" => &["short_factor", "long_factor", ORIGINAL],
        _ => &[],
    }
}

/// Filled in by the class of a file that lacks it, but not in what overrides it.
const ORIGINAL: &str = "original_max_position_embeddings";

/// Kinds that vLLM can build; another one ends its start.
const KINDS: &[&str] = &[
    "default",
    "axial",
    "bailing_mrope",
    "deepseek_llama_scaling",
    "deepseek_yarn",
    "dynamic",
    "linear",
    "llama3",
    "longrope",
    "mllama4",
    "mrope",
    "ntk",
    "openpangu",
    "proportional",
    "su",
    "xdrope",
    "yarn",
];

/// Kinds that Phi-3's class takes.
const PHI3: &[&str] = &["default", "longrope", "su", "yarn"];

/// Why vLLM rejects a configuration, where it does.
pub(crate) fn rejected(model: &Model, version: Version, tp: u64) -> Option<PlanError> {
    let classes = (version >= CLASSES_CHECK).then(|| class(model)).flatten();
    classes
        .or_else(|| rotary(model))
        .or_else(|| heads(model, tp))
        .or_else(|| compressed(model))
        .or_else(|| own_code(model))
}

fn bad(key: &str, why: impl Into<String>) -> Option<PlanError> {
    Some(PlanError::contradiction(format!("config.json: {key}"), why))
}

/// What the class of a configuration looks at while it reads the file.
fn class(model: &Model) -> Option<PlanError> {
    let text = &model.text;
    let own = |keys: &[&str]| keys.iter().all(|k| !model.overridden.iter().any(|o| o == k));
    // Each configuration in the configuration is looked at by a class of its own.
    let towers = [&model.encoder, &model.sound].into_iter().flatten().map(|e| &e.raw);
    let unequal = std::iter::once(text).chain(towers).find_map(|part| {
        let layers = part.get("num_hidden_layers").and_then(number)?;
        let count = |key: &'static str| Some((key, part.get(key)?.as_array()?.len() as u64));
        let lists = ["layer_types", "mlp_layer_types"].into_iter().filter_map(count);
        let mut unequal = lists.filter(|(key, n)| *n != layers && own(&[key, "num_hidden_layers"]));
        unequal.next().map(|(key, n)| (key, n, layers))
    });
    if let Some((key, listed, n)) = unequal {
        let why = format!("`num_hidden_layers` ({n}) must be equal to the number of `{key}` ({listed})");
        return bad(key, why);
    }
    // vLLM config/model.py asks this of what overrides the file, too.
    let beyond = text.get("per_layer_config").and_then(Value::as_object).and_then(|single| {
        single.keys().find(|k| k.parse::<u64>().is_ok_and(|i| i >= model.layers.len() as u64))
    });
    if let Some(key) = beyond {
        let why = format!("it speaks of layer {key}, and there are {}", model.layers.len());
        return bad("per_layer_config", why);
    }
    let count = |k: &str| text.get(k).and_then(number).filter(|n| *n > 0);
    if let (Some(hidden), Some(heads)) = (count("hidden_size"), count("num_attention_heads"))
        && HEADS_DIVIDE_WIDTH.contains(&model.model_type.as_str())
        && !hidden.is_multiple_of(heads)
        && own(&["hidden_size", "num_attention_heads"])
    {
        return bad(
            "num_attention_heads",
            format!(
                "The hidden size ({hidden}) is not a multiple of the number of attention heads ({heads})."
            ),
        );
    }
    // transformers models/olmo_hybrid/configuration_olmo_hybrid.py.
    if let Some(kinds) = kinds_of_layers(text).filter(|_| model.model_type == "olmo_hybrid") {
        let linear = kinds.iter().filter(|k| **k == "linear_attention").count();
        if own(&["layer_types"]) && (linear == 0 || linear == kinds.len()) {
            let lacks = if linear == 0 { "'linear_attention'" } else { "attention" };
            return bad("layer_types", format!("OLMoHybrid expects at least one {lacks} layer."));
        }
    }
    // transformers models/phi3/configuration_phi3.py; what else has stretched it is read as LongRoPE.
    let stretched = settings(text).iter().map(|(_, rope)| kind(rope)).find(|k| !PHI3.contains(k));
    if let Some(kind) =
        stretched.filter(|_| model.model_type == "phi3" && own(&["rope_scaling", "rope_parameters"]))
    {
        return bad("rope_scaling", format!("its type must be one of ['longrope'], got {kind}"));
    }
    let odd = count("head_dim").filter(|n| *n > 4 && !n.is_multiple_of(2) && own(&["head_dim"]))?;
    let whole = |rope: &Value| {
        let share = rope.get("partial_rotary_factor").or_else(|| text.get("partial_rotary_factor"));
        share.and_then(Value::as_f64).is_none_or(|s| (odd as f64 * s) as u64 == odd)
    };
    let turned = settings(text).iter().any(|(_, rope)| whole(rope)) || text.get("rope_theta").is_some();
    turned
        .then(|| bad("head_dim", format!("RoPE requires an even rotary dimension, and a head has {odd}")))
        .flatten()
}

/// What `layer_types` says, one word a layer.
fn kinds_of_layers(text: &Value) -> Option<Vec<&str>> {
    text.get("layer_types")?.as_array()?.iter().map(Value::as_str).collect()
}

/// Keys that a scaling of positions is made from.
fn rotary(model: &Model) -> Option<PlanError> {
    // What transformers' code serves, and what turns nothing, never comes to vLLM's.
    if model.rotary.is_empty() {
        return None;
    }
    let set_late =
        ["rope_scaling", "rope_parameters"].iter().any(|k| model.overridden.iter().any(|o| o == k));
    for (_, rope) in settings(&model.text) {
        let kind = match kind(rope) {
            "yarn" if model.model_type == "phi3" => "longrope",
            other => other,
        };
        if !KINDS.contains(&kind) {
            return bad("rope_scaling", format!("Unknown RoPE scaling type {kind}"));
        }
        // Hunyuan's dynamic scaling has a base of its own (`alpha`).
        let lacks = |key: &&&str| {
            rope.get(**key).is_none()
                && (**key != ORIGINAL || set_late)
                && !(**key == "factor" && kind == "dynamic" && rope.get("alpha").is_some())
        };
        if let Some(key) = asks_for(kind).iter().find(lacks) {
            let why = format!("{key} is missing, which the scaling `{kind}` is made from");
            return match set_late {
                true => Some(PlanError::contradiction("--hf-overrides", format!("rope_scaling: {why}"))),
                false => bad("rope_scaling", why),
            };
        }
    }
    None
}

/// vLLM layers/attention/attention.py: as many query heads of a rank share each KV head.
fn heads(model: &Model, tp: u64) -> Option<PlanError> {
    let tp = tp.max(1);
    let unequal = model.layers.iter().find_map(|l| match l.attention {
        Attention::Gqa(g) => {
            let (heads, kv) = (g.heads / tp, (g.kv_heads / tp).max(1));
            (heads > 0 && g.kv_heads > 0 && !heads.is_multiple_of(kv)).then_some((heads, kv))
        }
        _ => None,
    });
    let (heads, kv) = unequal?;
    bad("num_key_value_heads", format!("num_heads ({heads}) is not divisible by num_kv_heads ({kv})"))
}

/// vLLM models/deepseek_v4/compressor.py: heads whose entries it can pack.
fn compressed(model: &Model) -> Option<PlanError> {
    let packs = |l: &Layer| matches!(l.attention, Attention::Compressed(c) if c.ratio > 0);
    let head = model.text.get("head_dim").and_then(number).filter(|n| !matches!(n, 128 | 512))?;
    (model.family == Family::DeepseekV4 && model.layers.iter().any(packs))
        .then(|| bad("head_dim", format!("Unsupported head_dim for fused quant+cache: {head}")))
        .flatten()
}

/// What the code of one architecture asks for (vLLM models/gpt_j.py, zamba2.py, lfm2_moe.py, whisper.py; torch's `Embedding`
/// in transformers' code).
fn own_code(model: &Model) -> Option<PlanError> {
    let count = |k: &str| model.text.get(k).and_then(number);
    let torch = model.traits.backend == ModelCode::Transformers || model.family == Family::Whisper;
    // What transformers' class fills in where the file has no such key; in the others it is none, or a small one.
    let filled = match model.architecture.as_str() {
        "FlexOlmoForCausalLM" => Some(100_277),
        "GlmForCausalLM" => Some(151_329),
        "SmolLM3ForCausalLM" => Some(128_004),
        _ => None,
    };
    let pad = if model.text.get("pad_token_id").is_some() { count("pad_token_id") } else { filled };
    if torch && pad.is_some_and(|pad| pad >= model.vocab_size) {
        return bad("pad_token_id", "Padding_idx must be within num_embeddings");
    }
    // vLLM models/gemma4.py: the last layers read the cache of the last one before them of their own kind.
    if model.family == Family::Gemma4
        && let Some(mut kinds) = kinds_of_layers(&model.text)
        && let Some(shared) = count("num_kv_shared_layers").and_then(|n| usize::try_from(n).ok())
    {
        // transformers' Gemma4TextConfig makes the last layer a full one, whatever the list says.
        if let Some(last) = kinds.last_mut() {
            *last = "full_attention";
        }
        // Of more than there are, the code counts from the end of the list.
        let own = match kinds.len().checked_sub(shared) {
            Some(own) => own,
            None => (2 * kinds.len()).saturating_sub(shared),
        };
        let (own, shared) = (kinds.get(..own)?, kinds.get(kinds.len().saturating_sub(shared)..)?);
        if let Some(kind) = shared.iter().find(|k| !own.contains(k)) {
            return bad(
                "num_kv_shared_layers",
                format!("'{kind}' is not in list (the {} layers before)", own.len()),
            );
        }
    }
    // vLLM models/gpt_oss.py takes YaRN's numbers, whatever the scaling calls itself.
    if model.family == Family::GptOss {
        let asked = ["factor", "beta_fast", "beta_slow"];
        let given = ["rope_scaling", "rope_parameters"].iter().filter_map(|k| model.text.get(k));
        let lacks = |rope: &Value| asked.into_iter().find(|k| rope.is_object() && rope.get(k).is_none());
        if let Some(key) = given.into_iter().find_map(lacks) {
            return bad("rope_scaling", format!("KeyError: '{key}', which gpt-oss turns its heads by"));
        }
    }
    match model.architecture.as_str() {
        "GPTJForCausalLM" if model.tied => {
            bad("tie_word_embeddings", "AssertionError: assert not config.tie_word_embeddings")
        }
        "BeamForCausalLM" if model.tied => {
            bad("tie_word_embeddings", "NotImplementedError: Beam requires tie_word_embeddings=False.")
        }
        "GPTJForCausalLM" if count("rotary_dim").is_some_and(|d| !d.is_multiple_of(2)) => {
            bad("rotary_dim", "AssertionError: assert config.rotary_dim % 2 == 0")
        }
        "Zamba2ForCausalLM" => {
            let width = count("attention_hidden_size")?;
            let (head, heads) = (count("attention_head_dim")?, model.heads);
            let why = format!(
                "attention_hidden_size must be divisible by num_attention_heads ({heads} heads of {head} are not its {width})"
            );
            (head.checked_mul(heads) != Some(width)).then(|| bad("attention_hidden_size", why)).flatten()
        }
        "Lfm2MoeForCausalLM" => {
            let routes = |l: &Layer| matches!(l.feed_forward, FeedForward::Moe(_));
            let why = "No Lfm2MoeSparseMoeBlock layer found in the model.layers.";
            (!model.layers.iter().any(routes)).then(|| bad("num_dense_layers", why)).flatten()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ModelFiles;

    /// What a config of eight layers that is changed so ends with, as vLLM 0.33.0's own code was asked.
    fn ends(change: &Value, overridden: &[&str]) -> Option<String> {
        let mut config = json!({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 8192,
            "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 8, "vocab_size": 32000,
            "max_position_embeddings": 8192, "rope_theta": 1e6,
        });
        config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let config = config.to_string();
        let mut model = Model::read(&ModelFiles { config: &config, ..ModelFiles::default() }).unwrap();
        model.overridden = overridden.iter().map(|k| (*k).to_owned()).collect();
        rejected(&model, Version(0, 33, 0), 1).map(|e| e.to_string())
    }

    #[test]
    fn a_scaling_wants_its_keys() {
        for (rope, key) in [
            (json!({"rope_type": "linear"}), "factor"),
            (json!({"rope_type": "dynamic"}), "factor"),
            (json!({"rope_type": "yarn"}), "factor"),
            (json!({"rope_type": "longrope", "factor": 2.0}), "short_factor"),
            (json!({"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0}), "low_freq_factor"),
            (json!({"rope_type": "of_my_own"}), "Unknown RoPE scaling type of_my_own"),
        ] {
            let said = ends(&json!({"rope_scaling": rope}), &[]);
            assert!(said.as_ref().is_some_and(|e| e.contains(key)), "{rope}: {said:?}");
        }
        // The class of the file fills in what it was trained with; nobody does for what overrides it.
        let yarn = json!({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}});
        assert_eq!(ends(&yarn, &[]), None);
        assert!(ends(&yarn, &["rope_scaling"]).is_some_and(|e| e.contains(ORIGINAL)));
        for good in [json!({"rope_type": "dynamic", "factor": 2.0}), json!({"type": "mrope"}), json!(null)] {
            assert_eq!(ends(&json!({"rope_scaling": good}), &[]), None, "{good}");
        }
    }

    #[test]
    fn a_class_looks_at_the_file_and_not_at_what_overrides_it() {
        let kinds = json!({"layer_types": vec!["full_attention"; 36]});
        assert!(
            ends(&kinds, &[])
                .is_some_and(|e| e.contains("must be equal to the number of `layer_types` (36)"))
        );
        assert_eq!(ends(&kinds, &["num_hidden_layers"]), None);
        let heads = json!({"num_attention_heads": 24});
        assert!(ends(&heads, &[]).is_some_and(|e| e.contains("not a multiple")));
        assert_eq!(ends(&heads, &["num_attention_heads"]), None);
        assert!(ends(&json!({"head_dim": 127}), &[]).is_some_and(|e| e.contains("even")));
        assert_eq!(ends(&json!({"head_dim": 128}), &[]), None);
        assert!(
            ends(&json!({"num_key_value_heads": 5}), &[]).is_some_and(|e| e.contains("num_kv_heads (5)"))
        );
        assert_eq!(ends(&json!({"num_key_value_heads": 1}), &[]), None);
    }

    /// Each as vLLM 0.33.0's own code was asked.
    #[test]
    fn the_code_of_an_architecture_asks_for_its_own() {
        let said = |architecture: &str, model_type: &str, change: Value| {
            let mut all = json!({"architectures": [architecture], "model_type": model_type});
            all.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            ends(&all, &[])
        };
        let gptj = |tied: bool, turned: u64| {
            said("GPTJForCausalLM", "gptj", json!({"tie_word_embeddings": tied, "rotary_dim": turned}))
        };
        assert_eq!(gptj(false, 64), None);
        assert!(gptj(true, 64).is_some_and(|e| e.contains("assert not config.tie_word_embeddings")));
        assert!(gptj(false, 63).is_some_and(|e| e.contains("rotary_dim % 2")));
        let oss = |change: Value| said("GptOssForCausalLM", "gpt_oss", change);
        let yarn = json!({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 4096});
        let experts =
            |rope: Value| json!({"num_local_experts": 8, "num_experts_per_tok": 2, "rope_scaling": rope});
        assert_eq!(oss(experts(yarn)), None);
        assert_eq!(oss(experts(json!(null))), None);
        let other = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096});
        assert!(oss(experts(other)).is_some_and(|e| e.contains("KeyError: 'beta_fast'")));
        let beam = |tied: bool| said("BeamForCausalLM", "beam", json!({"tie_word_embeddings": tied}));
        assert_eq!(beam(false), None);
        assert!(beam(true).is_some_and(|e| e.contains("requires tie_word_embeddings=False")));
        let pad = |architecture, model_type, pad: u64| {
            said(architecture, model_type, json!({"pad_token_id": pad}))
                .is_some_and(|e| e.contains("Padding_idx"))
        };
        assert!(pad("FlexOlmoForCausalLM", "flex_olmo", 32_007));
        assert!(!pad("FlexOlmoForCausalLM", "flex_olmo", 31_999));
        // Without the key the class fills in its own; none at all is none.
        let silent =
            |key: Value| said("GlmForCausalLM", "glm", key).is_some_and(|e| e.contains("Padding_idx"));
        assert!(silent(json!({})));
        assert!(!silent(json!({"pad_token_id": null})));
        assert!(!silent(json!({"vocab_size": 151_552})));
        assert!(!pad("LlamaForCausalLM", "llama", 32_007));
    }

    #[test]
    fn a_hybrid_has_both_kinds_of_layers() {
        let olmo = |kinds: &[&str]| {
            let all: Vec<&str> = kinds.iter().copied().cycle().take(8).collect();
            ends(
                &json!({"architectures": ["OlmoHybridForCausalLM"], "model_type": "olmo_hybrid", "layer_types": all,
                "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 96,
                "linear_value_head_dim": 192, "linear_conv_kernel_dim": 4}),
                &[],
            )
        };
        assert_eq!(olmo(&["linear_attention", "full_attention"]), None);
        assert!(olmo(&["linear_attention"]).is_some_and(|e| e.contains("at least one attention layer")));
        assert!(olmo(&["full_attention"]).is_some_and(|e| e.contains("'linear_attention'")));
    }

    #[test]
    fn a_layer_that_shares_a_cache_finds_one_of_its_own_kind() {
        let gemma = |full: usize, shared: u64| {
            let mut kinds = vec!["sliding_attention"; 8];
            kinds[full] = "full_attention";
            let text = json!({"model_type": "gemma4_text", "hidden_size": 512, "num_attention_heads": 8,
                "num_key_value_heads": 2, "num_hidden_layers": 8, "intermediate_size": 1024, "vocab_size": 1024,
                "max_position_embeddings": 4096, "sliding_window": 512, "head_dim": 64, "layer_types": kinds,
                "num_kv_shared_layers": shared});
            ends(
                &json!({"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "text_config": text}),
                &[],
            )
        };
        assert_eq!((gemma(2, 4), gemma(5, 0)), (None, None));
        assert!(gemma(2, 8).is_some() && gemma(2, 14).is_some());
        assert!(gemma(5, 4).is_some_and(|e| e.contains("'full_attention' is not in list")));
    }

    #[test]
    fn a_tower_lists_as_many_layers_as_it_has() {
        let tower = |layers: u64| {
            let vision = json!({"num_hidden_layers": layers, "hidden_size": 64, "layer_types": vec!["full_attention"; 4]});
            ends(
                &json!({"architectures": ["MuseGlimmerForConditionalGeneration"], "model_type": "muse_glimmer",
                "vision_config": vision}),
                &[],
            )
        };
        assert_eq!(tower(4), None);
        assert!(tower(6).is_some_and(|e| e.contains("`num_hidden_layers` (6)")));
    }
}
