//! A quantised sibling of a model that is known: its name says the scheme, and its publisher's files were not read.

use super::{CatalogueEntry, find, name_of, normal, one};

/// A model that is known but for its quantisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// The model whose shape it has.
    pub base: &'static CatalogueEntry,
    /// What its name says, as people write it.
    pub scheme: &'static str,
    /// `config.json` with the quantisation that tools of that scheme write.
    pub config: String,
    /// `hf_quant_config.json`, where the scheme is told there.
    pub hf_quant_config: Option<&'static str>,
}

/// How a scheme is written: endings of names without separators, and what the config holds.
struct Scheme {
    endings: &'static [&'static str],
    name: &'static str,
    config: &'static str,
    hf_quant_config: Option<&'static str>,
}

const fn scheme(endings: &'static [&'static str], name: &'static str, config: &'static str) -> Scheme {
    Scheme { endings, name, config, hf_quant_config: None }
}

/// Sources: the configs of the catalogue's own quantised models; llm-compressor's presets for `w8a8`,
/// `w8a16`, `w4a16` and FP8-dynamic.
const SCHEMES: &[Scheme] = &[
    scheme(
        &["fp8dynamic"],
        "FP8 by channel",
        r#"{"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"], "config_groups": {"group_0":
        {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true},
        "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true, "symmetric": true}}}}"#,
    ),
    scheme(
        &["fp8kv", "fp8"],
        "FP8 by tensor",
        r#"{"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]}"#,
    ),
    scheme(
        &["quantizedw8a8", "w8a8", "int8"],
        "INT8 by channel",
        r#"{"quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"], "config_groups": {"group_0":
        {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": true},
        "input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true, "symmetric": true}}}}"#,
    ),
    scheme(
        &["quantizedw8a16", "w8a16"],
        "8 bits by channel",
        r#"{"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"], "config_groups": {"group_0":
        {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": true}}}}"#,
    ),
    scheme(
        &["quantizedw4a16", "w4a16"],
        "4 bits in groups of 128",
        r#"{"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"], "config_groups": {"group_0":
        {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric":
        true}}}}"#,
    ),
    scheme(
        &["awqint4", "int4awq", "awq4bit", "awq"],
        "AWQ",
        r#"{"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true, "version": "gemm"}"#,
    ),
    scheme(
        &["gptqint8", "gptq8bit"],
        "GPTQ with 8 bits",
        r#"{"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": false, "sym": true}"#,
    ),
    scheme(
        &["gptqint4", "gptq4bit", "gptq"],
        "GPTQ",
        r#"{"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false, "sym": true}"#,
    ),
    scheme(
        &["unslothbnb4bit", "bnb4bit"],
        "bitsandbytes with 4 bits",
        r#"{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "llm_int8_skip_modules":
        ["lm_head"]}"#,
    ),
    // Weights of 4 bits with a scale of 8 bits for 32 inputs: the same tensors in AMD Quark's files.
    scheme(
        &["mxfp4a16", "mxfp4preview", "mxfp4"],
        "MXFP4",
        r#"{"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": ["lm_head"], "config_groups":
        {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32,
        "symmetric": true}}}}"#,
    ),
    Scheme {
        endings: &["nvfp4a16", "nvfp4", "fp4"],
        name: "NVFP4",
        config: "null",
        hf_quant_config: Some(
            r#"{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": null,
            "group_size": 16, "exclude_modules": ["lm_head"]}}"#,
        ),
    },
];

/// The sibling that an id means: a name of the catalogue and an ending that says a scheme.
#[must_use]
pub fn sibling(id: &str) -> Option<Sibling> {
    let want = normal(id.trim());
    let name = name_of(&want);
    // The longest ending: `gptqint8` is more than `int8`.
    let endings = SCHEMES.iter().flat_map(|s| s.endings.iter().map(move |e| (s, *e)));
    let (scheme, ending) = endings.filter(|(_, e)| name.ends_with(e)).max_by_key(|(_, e)| e.len())?;
    let rest = name.strip_suffix(ending).filter(|r| !r.is_empty())?;
    // Publishers of quantised copies are others than the model's own.
    let short = rest.strip_prefix("meta").unwrap_or(rest);
    let base = one(|n| n == rest).or_else(|| one(|n| n == short)).or_else(|| find(rest))?;
    let mut config: serde_json::Value = serde_json::from_str(base.config()).ok()?;
    let text = config.as_object_mut()?;
    // What is quantised already is another base.
    if text.contains_key("quantization_config") || base.hf_quant_config().is_some() {
        return None;
    }
    let own: serde_json::Value = serde_json::from_str(scheme.config).ok()?;
    if !own.is_null() {
        text.insert("quantization_config".into(), own);
    }
    Some(Sibling {
        base,
        scheme: scheme.name,
        config: config.to_string(),
        hf_quant_config: scheme.hf_quant_config,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, ModelFiles};

    #[test]
    fn each_scheme_is_read_as_a_quantisation() {
        for s in SCHEMES {
            for ending in s.endings {
                let id = format!("somebody/Llama-3.1-8B-Instruct-{ending}");
                let found = sibling(&id).unwrap_or_else(|| panic!("{id}"));
                assert_eq!(Some(found.base.config()), find("llama3.1:8b").map(|e| e.config()), "{id}");
                let files = ModelFiles {
                    config: &found.config,
                    hf_quant_config: found.hf_quant_config,
                    ..ModelFiles::default()
                };
                let model = Model::read(&files).unwrap();
                assert!(model.quantization.is_some(), "{id}");
            }
        }
    }

    #[test]
    fn what_is_no_sibling_is_none() {
        for id in ["Qwen/Qwen3-8B", "somebody/Unheard-7B-AWQ", "AWQ", ""] {
            assert_eq!(sibling(id), None, "{id}");
        }
    }
}
