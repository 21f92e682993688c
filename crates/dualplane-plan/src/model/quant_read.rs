//! What a checkpoint says about its quantisation, in `config.json` or beside it.

use std::collections::HashMap;

use serde_json::Value;

use super::keys::number;
use super::quant::{Aside, LinearScheme, Patterns, QuantMethod, Quantization, canonical};
use crate::outcome::PlanError;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) weights: Option<Quantization>,
    pub(super) kv_dtype: Option<String>,
    /// What ModelOpt says where vLLM does not look, and SGLang does.
    pub(super) aside: Option<Aside>,
}

/// More entries than any checkpoint has.
const MAX_ENTRIES: usize = 100_000;

/// Reads the block of the config, else the file beside it. A block in the config wins, even one without a method.
pub(super) fn read(
    config: &Value,
    text: &Value,
    file: Option<&Value>,
    architecture: &str,
) -> Result<Read, PlanError> {
    let block = config
        .get("quantization_config")
        .or_else(|| config.get("compression_config"))
        .or_else(|| text.get("quantization_config"))
        .filter(|v| v.is_object());
    let file = file.map(|f| f.get("quantization").unwrap_or(f));
    match (block, file) {
        (Some(q), file) => Ok(Read { aside: aside(q, file), ..of_block(q, architecture)? }),
        (None, Some(f)) => of_modelopt(f, "hf_quant_config.json"),
        (None, None) => Ok(Read::default()),
    }
}

/// A block without a method, or one of several precisions without a word on the cache, which the file beside it has.
///
/// Source: SGLang 0.5.23 configs/model_config.py `_parse_quant_hf_config`, model_loader/weight_utils.py `get_quant_config`.
fn aside(block: &Value, file: Option<&Value>) -> Option<Aside> {
    let mixed = str(block, "quant_algo") == Some("MIXED_PRECISION");
    let of = match (str(block, "quant_method"), file) {
        (None, _) if block.get("quant_algo").is_some() => block,
        (Some("modelopt" | "modelopt_mixed"), Some(file))
            if mixed
                && block.get("kv_cache_quant_algo").is_none()
                && block.get("kv_cache_scheme").is_none() =>
        {
            file
        }
        _ => return None,
    };
    let read = of_modelopt(of, "config.json").ok()?;
    Some(Aside { weights: read.weights?, kv_dtype: read.kv_dtype })
}

fn str<'a>(q: &'a Value, key: &str) -> Option<&'a str> {
    q.get(key)?.as_str()
}

fn strings<'a>(q: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    q.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).take(MAX_ENTRIES)
}

fn make(method: QuantMethod, default: LinearScheme, ignored: Patterns) -> Quantization {
    Quantization { method, default, experts: default, ignored, by_module: HashMap::new(), head: false }
}

fn of_block(q: &Value, architecture: &str) -> Result<Read, PlanError> {
    let Some(method) = str(q, "quant_method") else { return Ok(Read::default()) };
    let weights = match method {
        _ if architecture == "DeepseekV4ForCausalLM" && method == "fp8" => deepseek_v4(q),
        "fp8" => fp8(q),
        "modelopt" | "modelopt_fp4" | "modelopt_mixed" => return of_modelopt(q, "config.json"),
        "compressed-tensors" => return compressed_tensors(q, architecture),
        "mxfp4" | "gpt_oss_mxfp4" => Quantization {
            experts: LinearScheme::Mxfp4,
            ..make(QuantMethod::GptOssMxfp4, LinearScheme::Plain, Patterns::default())
        },
        "awq" | "awq_marlin" => int_group(q, QuantMethod::Awq, "modules_to_not_convert"),
        "gptq" | "gptq_marlin" => int_group(q, QuantMethod::Gptq, "modules_in_block_to_quantize"),
        "bitsandbytes" => make(
            QuantMethod::Bitsandbytes,
            if q.get("load_in_8bit").and_then(Value::as_bool) == Some(true) {
                LinearScheme::Int8Channel
            } else {
                LinearScheme::Nf4
            },
            Patterns::new(strings(q, "llm_int8_skip_modules")),
        ),
        "fbgemm_fp8" => make(
            QuantMethod::Fp8,
            LinearScheme::Fp8Channel,
            Patterns::new(strings(q, "modules_to_not_convert")),
        ),
        other => return Err(PlanError::unsupported(format!("quantisation method {other}"))),
    };
    Ok(Read { weights: Some(weights), kv_dtype: None, aside: None })
}

fn tile(q: &Value) -> Option<LinearScheme> {
    let size = q.get("weight_block_size")?.as_array()?;
    let (rows, columns) = (number(size.first()?)?, number(size.get(1)?)?);
    (rows > 0 && columns > 0).then_some(LinearScheme::Fp8Block { rows, columns })
}

fn fp8(q: &Value) -> Quantization {
    let scheme = tile(q)
        .unwrap_or(LinearScheme::Fp8Tensor { static_input: str(q, "activation_scheme") == Some("static") });
    let ignored = strings(q, "modules_to_not_convert").chain(strings(q, "ignored_layers"));
    make(QuantMethod::Fp8, scheme, Patterns::new(ignored))
}

fn deepseek_v4(q: &Value) -> Quantization {
    let default = tile(q).unwrap_or(LinearScheme::Fp8Block { rows: 128, columns: 128 });
    let nvfp4 = str(q, "moe_quant_algo").is_some_and(|a| a.contains("NVFP4"));
    let group = q.get("group_size").and_then(number).filter(|g| *g > 0).unwrap_or(16);
    let experts = if nvfp4 { LinearScheme::Nvfp4 { group } } else { LinearScheme::Mxfp4 };
    Quantization { experts, ..make(QuantMethod::DeepseekV4Fp8, default, Patterns::default()) }
}

fn int_group(q: &Value, method: QuantMethod, ignored: &str) -> Quantization {
    let get = |names: &[&str]| names.iter().find_map(|n| q.get(n)).and_then(Value::as_i64);
    let bits = get(&["bits", "w_bit"]).and_then(|b| u64::try_from(b).ok()).unwrap_or(4);
    // -1 is one group over all inputs.
    let group = get(&["group_size", "q_group_size"]).and_then(|g| u64::try_from(g).ok()).unwrap_or(0);
    let symmetric = q.get("sym").and_then(Value::as_bool).unwrap_or(false);
    let zeros = match method {
        QuantMethod::Awq => q.get("zero_point").and_then(Value::as_bool) != Some(false),
        _ => !symmetric,
    };
    let order = q.get("desc_act").and_then(Value::as_bool) == Some(true);
    let ignored =
        if method == QuantMethod::Awq { Patterns::new(strings(q, ignored)) } else { Patterns::default() };
    let head = q.get("lm_head").and_then(Value::as_bool) == Some(true);
    Quantization { head, ..make(method, LinearScheme::IntGroup { bits, group, zeros, order }, ignored) }
}

/// Scheme by the name that ModelOpt gives it.
fn algo(name: &str, group: u64) -> Option<LinearScheme> {
    Some(match name {
        "FP8" => LinearScheme::Fp8Tensor { static_input: true },
        "FP8_PER_CHANNEL_PER_TOKEN" => LinearScheme::Fp8Channel,
        "FP8_PB_WO" => LinearScheme::Fp8Block { rows: 128, columns: 128 },
        "NVFP4" | "W4A16_NVFP4" | "NVFP4_AWQ" => LinearScheme::Nvfp4 { group },
        "MXFP4" => LinearScheme::Mxfp4,
        _ => return None,
    })
}

fn of_modelopt(q: &Value, file: &str) -> Result<Read, PlanError> {
    let name = str(q, "quant_algo").unwrap_or_default();
    let group = q.get("group_size").and_then(number).filter(|g| *g > 0).unwrap_or(16);
    let flat = q.get("quant_method").is_none();
    let ignored = Patterns::new(strings(q, "exclude_modules").chain(strings(q, "ignore")));
    let kv_dtype = match (q.get("kv_cache_quant_algo"), q.get("kv_cache_scheme")) {
        (Some(Value::String(s)), _) if s.eq_ignore_ascii_case("FP8") => Some("fp8_e4m3".to_owned()),
        (Some(Value::String(s)), _) if s.eq_ignore_ascii_case("NVFP4") => Some("nvfp4".to_owned()),
        (_, Some(s)) if is_fp8_scheme(s) => Some("fp8_e4m3".to_owned()),
        _ => None,
    };
    if name == "MIXED_PRECISION" {
        let mut by_module = HashMap::new();
        for (module, entry) in
            q.get("quantized_layers").and_then(Value::as_object).into_iter().flatten().take(MAX_ENTRIES)
        {
            let own = entry.get("group_size").and_then(number).filter(|g| *g > 0).unwrap_or(group);
            if let Some(scheme) = str(entry, "quant_algo").and_then(|a| algo(a, own)) {
                by_module.insert(canonical(module), scheme);
            }
        }
        let weights = make(QuantMethod::ModeloptMixed, LinearScheme::Plain, ignored);
        return Ok(Read { weights: Some(Quantization { by_module, ..weights }), kv_dtype, aside: None });
    }
    let Some(scheme) = algo(name, group) else {
        return Err(PlanError::unsupported(format!("ModelOpt algorithm {name} in {file}")));
    };
    let method = if matches!(scheme, LinearScheme::Nvfp4 { .. }) {
        if flat {
            let missing: Vec<_> =
                ["group_size", "exclude_modules"].into_iter().filter(|k| q.get(k).is_none()).collect();
            if !missing.is_empty() {
                return Err(PlanError::contradiction(
                    format!("{file}: {}", missing.join(", ")),
                    "NVFP4 quantization requires these fields",
                ));
            }
        }
        QuantMethod::ModeloptFp4
    } else {
        QuantMethod::Modelopt
    };
    Ok(Read {
        weights: Some(Quantization { head: true, ..make(method, scheme, ignored) }),
        kv_dtype,
        aside: None,
    })
}

fn is_fp8_scheme(scheme: &Value) -> bool {
    scheme.get("num_bits").and_then(number) == Some(8) && str(scheme, "type") == Some("float")
}

fn compressed_tensors(q: &Value, architecture: &str) -> Result<Read, PlanError> {
    let format = str(q, "format").unwrap_or_default();
    let kv_dtype = q.get("kv_cache_scheme").filter(|s| is_fp8_scheme(s)).map(|_| "fp8_e4m3".to_owned());
    let ignored = Patterns::new(strings(q, "ignore"));
    let group = q.get("config_groups").and_then(Value::as_object).and_then(|g| g.values().next());
    let Some(weights) = group.and_then(|g| g.get("weights")).filter(|w| w.is_object()) else {
        return Err(PlanError::unsupported("compressed-tensors without config_groups"));
    };
    let bits = weights.get("num_bits").and_then(number).unwrap_or(0);
    let size = weights.get("group_size").and_then(number).unwrap_or(0);
    let strategy = str(weights, "strategy").unwrap_or_default();
    let float = str(weights, "type") == Some("float");
    let symmetric = weights.get("symmetric").and_then(Value::as_bool) != Some(false);
    if format == "mxfp4-pack-quantized" && !architecture.starts_with("KimiK3") {
        let weights = make(QuantMethod::CompressedTensors, LinearScheme::Mxfp4, ignored);
        return Ok(Read { weights: Some(weights), kv_dtype, aside: None });
    }
    if format == "mxfp4-pack-quantized" {
        // vLLM models/config.py hands such checkpoints of Kimi K3 to its `mxfp4` method, which knows experts only.
        let weights = Quantization {
            experts: LinearScheme::Mxfp4,
            ..make(QuantMethod::Mxfp4, LinearScheme::Plain, ignored)
        };
        return Ok(Read { weights: Some(weights), kv_dtype, aside: None });
    }
    let scheme = match (float, bits, strategy) {
        (true, 8, "tensor") => LinearScheme::Fp8Tensor { static_input: true },
        (true, 8, "channel") => LinearScheme::Fp8Channel,
        (true, 8, "block") => LinearScheme::Fp8Block { rows: 128, columns: 128 },
        (true, 4, _) => LinearScheme::Nvfp4 { group: if size == 0 { 16 } else { size } },
        (false, 8, "channel" | "tensor") => LinearScheme::Int8Channel,
        (false, bits @ (2..=8), "group" | "channel") => {
            LinearScheme::IntGroup { bits, group: size, zeros: !symmetric, order: false }
        }
        _ => {
            return Err(PlanError::unsupported(format!("compressed-tensors with {bits} bits by {strategy}")));
        }
    };
    Ok(Read { weights: Some(make(QuantMethod::CompressedTensors, scheme, ignored)), kv_dtype, aside: None })
}
