//! `vllm serve MODEL ...` and `python -m vllm.entrypoints.openai.api_server --model ...`.

use serde_json::Value;

use super::numbers::{count, gib, human, real, wrong};
use super::vllm_changes;
use super::vllm_flags::{FLAGS, NOT_FOLLOWED};
use super::words::{self, Given};
use super::{CommandLine, EngineKind};
use crate::launch::{Lora, MaxModelLen, Speculation, Speculative};
use crate::outcome::PlanError;

/// Ranks that the kernels have (vLLM config/lora.py of 0.33.0); older releases have fewer.
const LORA_RANKS: [u64; 9] = [1, 8, 16, 32, 64, 128, 256, 320, 512];
/// LoRA limits where the flags leave them open (vLLM config/lora.py).
const NO_LORA: Lora = Lora { max_loras: 1, max_rank: 16, max_cpu_loras: 1, fully_sharded: false };

/// What is put together from several flags.
#[derive(Default)]
struct Parts {
    lora_on: bool,
    lora: Option<Lora>,
    max_cpu_loras: Option<u64>,
    speculative: serde_json::Map<String, Value>,
}

/// How the model is cut, and how often it stands side by side.
const RANKS: [&str; 3] = ["tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"];

pub(super) fn parse(args: &[String]) -> Result<CommandLine, PlanError> {
    let words = words::flags_in_pairs(args, &FLAGS);
    let mut line = CommandLine::of(EngineKind::Vllm);
    line.changed = words.flags.iter().filter_map(vllm_changes::of).collect();
    line.model = words.loose.first().cloned();
    line.says_ranks = words.flags.iter().any(|given| RANKS.contains(&given.name.as_str()));
    let mut parts = Parts::default();
    for given in &words.flags {
        if !given.known && !level(given, &mut line) {
            line.unknown_flags.push(given.flag());
        } else if !parallel(given, &mut line)?
            && !memory(given, &mut line)?
            && !caches(given, &mut line)?
            && !graphs(given, &mut line)?
            && !compose(given, &mut parts)?
            && !model_config(given, &mut line)?
            && !transfer(given, &mut line)?
        {
            not_followed(given, &mut line);
        }
    }
    if parts.lora_on {
        let lora = parts.lora.unwrap_or(NO_LORA);
        let max_cpu_loras = parts.max_cpu_loras.unwrap_or(lora.max_loras);
        line.launch.lora = Some(Lora { max_cpu_loras, ..lora });
    }
    line.launch.speculative = speculative(&parts.speculative)?;
    Ok(line)
}

fn parallel(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    let l = &mut line.launch;
    match given.name.as_str() {
        "model" => line.model = Some(given.value().to_owned()),
        "tensor-parallel-size" => l.tp = count(given)?,
        "pipeline-parallel-size" => l.pp = count(given)?,
        "data-parallel-size" => l.dp = count(given)?,
        "decode-context-parallel-size" => l.dcp = count(given)?,
        "prefill-context-parallel-size" => l.pcp = count(given)?,
        "enable-expert-parallel" => l.expert_parallel = given.on,
        "num-redundant-experts" => l.redundant_experts = count(given)?,
        "eplb-config" => {
            if let Some(n) = member(given, "num_redundant_experts")? {
                l.redundant_experts = n;
            }
        }
        "api-server-count" => l.api_servers = count(given)?,
        "nnodes" => {
            line.host.nodes = count(given)?;
            line.host.several_nodes = line.host.nodes > 1;
        }
        "data-parallel-size-local" => {
            line.host.local_copies = Some(count(given)?);
            line.host.several_nodes = true;
        }
        "distributed-executor-backend" => line.host.ray = given.value() == "ray",
        _ => return Ok(false),
    }
    Ok(true)
}

fn memory(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    let l = &mut line.launch;
    match given.name.as_str() {
        "max-model-len" => {
            l.max_model_len = match given.value() {
                "-1" | "auto" => MaxModelLen::Fit,
                _ => MaxModelLen::Tokens(count(given)?),
            }
        }
        "max-num-seqs" => l.max_num_seqs = Some(count(given)?),
        "max-num-batched-tokens" => l.max_num_batched_tokens = Some(count(given)?),
        "block-size" => l.block_size = Some(count(given)?),
        "gpu-memory-utilization" => l.gpu_memory_utilization = Some(real(given)?),
        "kv-cache-memory-bytes" => l.kv_cache_memory_bytes = Some(count(given)?),
        "num-gpu-blocks-override" => l.num_gpu_blocks_override = Some(count(given)?),
        "dtype" => l.dtype = given.value().to_owned(),
        "quantization" => l.quantization = Some(given.value().to_owned()),
        "swap-space" => l.swap_space_bytes = Some(gib(given)?),
        "cpu-offload-gb" => l.cpu_offload_bytes = gib(given)?,
        "kv-offloading-size" => l.kv_offload_bytes = gib(given)?,
        "load-format" => l.load_format = given.value().to_owned(),
        "safetensors-load-strategy" => line.host.load_strategy = Some(given.value().to_owned()),
        "enable-sleep-mode" => line.host.sleep_mode = given.on,
        "mm-processor-cache-gb" => l.mm_processor_cache_bytes = Some(gib(given)?),
        "disable-mm-preprocessor-cache" if given.on => l.mm_processor_cache_bytes = Some(0),
        "disable-mm-preprocessor-cache" => {}
        "mm-processor-cache-type" => line.host.shm_processor_cache = given.value() == "shm",
        _ => return Ok(false),
    }
    Ok(true)
}

fn caches(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    let l = &mut line.launch;
    match given.name.as_str() {
        "kv-cache-dtype" => l.kv_cache_dtype = given.value().to_owned(),
        "enable-prefix-caching" => l.prefix_caching = Some(given.on),
        "mamba-cache-mode" => l.mamba_cache_mode = Some(given.value().to_owned()),
        "mamba-ssm-cache-dtype" => l.mamba_ssm_cache_dtype = Some(given.value().to_owned()),
        "async-scheduling" => l.async_scheduling = Some(given.on),
        "enable-chunked-prefill" => l.chunked_prefill = Some(given.on),
        "disable-hybrid-kv-cache-manager" => l.disable_hybrid_kv_cache_manager = given.on,
        "language-model-only" => l.language_model_only = given.on,
        "mm-encoder-tp-mode" => l.encoder_data_parallel = given.value() == "data",
        "skip-mm-profiling" => l.skip_mm_profiling = given.on,
        "trust-remote-code" => l.trust_remote_code = given.on,
        "attention-backend" => l.attention_backend = Some(given.value().to_owned()),
        "attention-config" => {
            if let Some(Value::String(backend)) = get(given, "backend")? {
                l.attention_backend = Some(backend);
            }
        }
        "limit-mm-per-prompt" => {
            // A limit is a number or an object with a count.
            let none = object(given)?.is_some_and(|o| {
                !o.is_empty() && o.values().all(|v| v.get("count").unwrap_or(v).as_u64() == Some(0))
            });
            l.language_model_only |= none;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `-O3` is a level of compilation, which has no memory of its own here.
fn level(given: &Given, line: &mut CommandLine) -> bool {
    let level = given.name.strip_prefix('O').and_then(|n| n.parse::<u8>().ok());
    // Level 0 neither compiles nor captures (vLLM config/vllm.py `OptimizationLevel`).
    if level == Some(0) {
        line.launch.cuda_graphs.mode = Some("NONE".into());
    }
    level.is_some()
}

fn graphs(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    let l = &mut line.launch;
    match given.name.as_str() {
        "enforce-eager" => l.enforce_eager = given.on,
        "cudagraph-capture-sizes" => l.cuda_graphs.sizes = Some(sizes(given)?),
        "max-cudagraph-capture-size" => l.cuda_graphs.max_size = Some(count(given)?),
        "compilation-config" => {
            if given.value().parse::<u8>().is_ok() && given.path.is_none() {
                return Ok(true);
            }
            if let Some(mode) = get(given, "cudagraph_mode")? {
                l.cuda_graphs.mode = mode.as_str().map(str::to_ascii_uppercase);
            }
            if let Some(Value::Array(list)) = get(given, "cudagraph_capture_sizes")? {
                l.cuda_graphs.sizes = Some(list.iter().filter_map(Value::as_u64).take(4096).collect());
            }
            if let Some(n) = member(given, "max_cudagraph_capture_size")? {
                l.cuda_graphs.max_size = Some(n);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn sizes(given: &Given) -> Result<Vec<u64>, PlanError> {
    let all = given.values.iter().flat_map(|v| v.split(',')).map(|v| human(v.trim_matches(['[', ']', ' '])));
    all.collect::<Option<Vec<u64>>>().ok_or_else(|| wrong(given, "is not a list of sizes"))
}

fn compose(given: &Given, parts: &mut Parts) -> Result<bool, PlanError> {
    let lora = |parts: &mut Parts, change: &dyn Fn(&mut Lora)| change(parts.lora.get_or_insert(NO_LORA));
    match given.name.as_str() {
        "enable-lora" => parts.lora_on = given.on,
        "max-loras" => {
            let n = count(given)?;
            lora(parts, &|l| l.max_loras = n);
        }
        "max-lora-rank" => {
            let n = count(given)?;
            if !LORA_RANKS.contains(&n) {
                let all = LORA_RANKS.map(|r| r.to_string()).join(", ");
                return Err(wrong(given, &format!("is none of {all}")));
            }
            lora(parts, &|l| l.max_rank = n);
        }
        "max-cpu-loras" => parts.max_cpu_loras = Some(count(given)?),
        "fully-sharded-loras" => lora(parts, &|l| l.fully_sharded = given.on),
        "spec-method" => {
            parts.speculative.insert("method".into(), given.value().into());
        }
        "speculative-model" | "spec-model" => {
            parts.speculative.insert("model".into(), given.value().into());
        }
        "num-speculative-tokens" | "spec-tokens" => {
            parts.speculative.insert("num_speculative_tokens".into(), count(given)?.into());
        }
        "speculative-config" => match &given.path {
            Some(path) => {
                let value = serde_json::from_str(given.value()).unwrap_or_else(|_| given.value().into());
                parts.speculative.insert(path.replace('-', "_"), value);
            }
            None => parts.speculative.extend(object(given)?.unwrap_or_default()),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn speculative(parts: &serde_json::Map<String, Value>) -> Result<Option<Speculative>, PlanError> {
    if parts.is_empty() {
        return Ok(None);
    }
    let model = parts.get("model").and_then(Value::as_str).map(str::to_owned);
    let named = parts.get("method").and_then(Value::as_str).map(str::to_ascii_lowercase);
    // Without a method the drafter's name decides, as in vLLM config/speculative.py.
    let lower = model.as_deref().unwrap_or_default().to_ascii_lowercase();
    let method = match named.as_deref() {
        Some("mtp") => Speculation::Mtp,
        Some(m) if m.ends_with("_mtp") => Speculation::Mtp,
        Some("eagle") => Speculation::Eagle,
        Some("eagle3") => Speculation::Eagle3,
        Some("draft_model") => Speculation::DraftModel,
        Some("ngram" | "[ngram]") => Speculation::Ngram,
        Some(_) => Speculation::Other,
        None if lower == "ngram" || lower == "[ngram]" => Speculation::Ngram,
        None if lower.contains("eagle3") => Speculation::Eagle3,
        None if lower.contains("eagle") => Speculation::Eagle,
        None if model.is_some() => Speculation::DraftModel,
        None => Speculation::Other,
    };
    let num_tokens = match parts.get("num_speculative_tokens") {
        None | Some(Value::Null) => 0,
        Some(v) => v.as_u64().filter(|n| *n <= 1024).ok_or_else(|| {
            PlanError::contradiction(
                "--speculative-config",
                format!("num_speculative_tokens {v} is not a count"),
            )
        })?,
    };
    let model = model.filter(|_| !matches!(method, Speculation::Ngram));
    Ok(Some(Speculative { method, num_tokens, model }))
}

/// What changes the model's configuration before it is read.
fn model_config(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    let own = |value: &str| serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    match (given.name.as_str(), &given.path) {
        ("hf-overrides", Some(path)) => {
            // `--hf-overrides.text_config.rope_scaling '{...}'`
            let names: Vec<&str> = path.split('.').collect();
            let nested = names.iter().rev().fold(own(given.value()), |inner, name| {
                Value::Object([((*name).replace('-', "_"), inner)].into_iter().collect())
            });
            if let Value::Object(map) = nested {
                merge(&mut line.overrides, map);
            }
        }
        ("hf-overrides", None) => merge(&mut line.overrides, object(given)?.unwrap_or_default()),
        ("rope-scaling", None) => {
            let value = object(given)?.map_or(Value::Null, Value::Object);
            line.overrides.insert("rope_scaling".into(), value);
        }
        ("rope-theta", None) => {
            line.overrides.insert("rope_theta".into(), real(given)?.into());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Objects within objects are merged, as vLLM's `hf_overrides` does.
fn merge(into: &mut serde_json::Map<String, Value>, from: serde_json::Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(own)), Value::Object(more)) => merge(own, more),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// `--kv-transfer-config`: what a connector keeps in RAM, where its settings say it.
///
/// Source: vLLM distributed/kv_transfer/kv_connector/v1/offloading_connector.py, lmcache_connector.py, nixl_connector.py.
fn transfer(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    if given.name != "kv-transfer-config" || given.path.is_some() {
        return Ok(false);
    }
    let map = object(given)?.unwrap_or_default();
    let connector = map.get("kv_connector").and_then(Value::as_str).unwrap_or_default();
    let extra = map.get("kv_connector_extra_config");
    let number =
        |key: &str| extra.and_then(|e| e.get(key)).and_then(Value::as_f64).filter(|n| *n >= 0.0 && *n < 1e15);
    let buffer_on_card = map.get("kv_buffer_device").and_then(Value::as_str).is_none_or(|d| d == "cuda");
    match connector {
        "OffloadingConnector" => match number("cpu_bytes_to_use") {
            Some(bytes) => line.launch.kv_offload_bytes = bytes as u64,
            None => return Ok(false),
        },
        // 5 GB for each rank where nothing else is set (LMCache config.py `max_local_cpu_size`).
        c if c.starts_with("LMCache") => {
            line.host.lmcache_bytes.get_or_insert(5_000_000_000);
        }
        // Registers the pool that is there, and takes none of its own.
        "NixlConnector" if buffer_on_card => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Settings with memory of their own that no formula here follows.
fn not_followed(given: &Given, line: &mut CommandLine) {
    let usual = given.values.iter().all(|v| v == "auto") && !given.values.is_empty();
    let follow = NOT_FOLLOWED.contains(&given.name.as_str()) && !usual;
    if follow {
        line.not_followed.push(match given.values.is_empty() {
            true => given.flag(),
            false => format!("{} {}", given.flag(), given.values.join(" ")),
        });
    }
}

/// The JSON object that a flag carries; `None` where it is given by path.
fn object(given: &Given) -> Result<Option<serde_json::Map<String, Value>>, PlanError> {
    if given.path.is_some() {
        return Ok(None);
    }
    match serde_json::from_str(given.value()) {
        Ok(Value::Object(map)) => Ok(Some(map)),
        // `image=4,video=0` is the older spelling of limits.
        _ if !given.value().contains('{') && given.value().contains('=') => Ok(Some(
            given
                .values
                .iter()
                .flat_map(|v| v.split(','))
                .filter_map(|p| p.split_once('='))
                .map(|(k, v)| (k.to_owned(), v.parse::<u64>().map_or(Value::Null, Value::from)))
                .collect(),
        )),
        _ => Err(wrong(given, "is not a JSON object")),
    }
}

/// A member of the object that a flag carries, whether given as JSON or by path.
fn get(given: &Given, name: &str) -> Result<Option<Value>, PlanError> {
    match &given.path {
        Some(path) if path.replace('-', "_") == name => {
            Ok(Some(serde_json::from_str(given.value()).unwrap_or_else(|_| given.value().into())))
        }
        Some(_) => Ok(None),
        None => Ok(object(given)?.and_then(|o| o.get(name).filter(|v| !v.is_null()).cloned())),
    }
}

fn member(given: &Given, name: &str) -> Result<Option<u64>, PlanError> {
    get(given, name)?
        .map(|v| v.as_u64().ok_or_else(|| wrong(given, &format!("has a {name} that is not a count"))))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> CommandLine {
        super::parse(&words::shell(text, &[]).concat()).unwrap()
    }

    #[test]
    fn flags_become_a_launch() {
        let l = parse(
            "m -tp 2 --pp=2 --max_model_len 32k --gpu-memory-utilization=0.95 --kv-cache-dtype fp8 --no-enable-prefix-caching \
             --swap-space 0 --cpu-offload-gb 1.5 --limit-mm-per-prompt '{\"image\": 0, \"video\": {\"count\": 0}}' --host 0.0.0.0 \
             --unheard-of 3 -O3 --hf-overrides '{}'",
        );
        assert_eq!((l.launch.tp, l.launch.pp, l.model.as_deref()), (2, 2, Some("m")));
        assert_eq!(l.launch.max_model_len, MaxModelLen::Tokens(32_000));
        assert_eq!(l.launch.gpu_memory_utilization, Some(0.95));
        assert_eq!(l.launch.prefix_caching, Some(false));
        assert_eq!(l.launch.cpu_offload_bytes, 3 << 29);
        assert!(l.launch.language_model_only);
        assert_eq!(l.unknown_flags, ["--unheard-of"]);
        assert!(l.not_followed.is_empty(), "{:?}", l.not_followed);
    }

    #[test]
    fn overrides_of_the_models_configuration_are_merged() {
        let l = parse(
            "m --hf-overrides '{\"num_hidden_layers\": 4, \"text_config\": {\"a\": 1}}' --hf-overrides.text_config.b 2 \
             --rope-scaling '{\"rope_type\": \"yarn\", \"factor\": 4.0}' --rope-theta 1e6",
        );
        let o = serde_json::Value::Object(l.overrides);
        assert_eq!(o["num_hidden_layers"], 4);
        assert_eq!(o["text_config"], serde_json::json!({"a": 1, "b": 2}));
        assert_eq!(o["rope_scaling"]["factor"], 4.0);
    }

    #[test]
    fn connectors_say_what_they_keep_in_ram() {
        let l = parse(
            "m --kv-transfer-config '{\"kv_connector\": \"OffloadingConnector\", \"kv_role\": \"kv_both\", \
             \"kv_connector_extra_config\": {\"cpu_bytes_to_use\": 64000000000}}'",
        );
        assert_eq!(l.launch.kv_offload_bytes, 64_000_000_000);
        let l = parse(
            "m --kv-transfer-config '{\"kv_connector\": \"LMCacheConnectorV1\", \"kv_role\": \"kv_both\"}'",
        );
        assert_eq!(l.host.lmcache_bytes, Some(5_000_000_000));
        let l = parse("m --kv-transfer-config '{\"kv_connector\": \"NixlConnector\"}'");
        assert!(l.not_followed.is_empty());
        let l = parse("m --kv-transfer-config '{\"kv_connector\": \"P2pNcclConnector\"}'");
        assert_eq!(l.not_followed.len(), 1);
    }

    #[test]
    fn nested_configurations_in_both_spellings() {
        let l = parse(
            "m --compilation-config '{\"cudagraph_mode\": \"full\", \"cudagraph_capture_sizes\": [1, 2]}' \
             --speculative-config '{\"method\": \"eagle3\", \"model\": \"d\", \"num_speculative_tokens\": 3}'",
        );
        assert_eq!(l.launch.cuda_graphs.mode.as_deref(), Some("FULL"));
        assert_eq!(l.launch.cuda_graphs.sizes, Some(vec![1, 2]));
        let s = l.launch.speculative.unwrap();
        assert_eq!((s.method, s.num_tokens, s.model.as_deref()), (Speculation::Eagle3, 3, Some("d")));
        let l =
            parse("m -cc.cudagraph_mode=NONE --speculative-config.method mtp -sc.num_speculative_tokens=1");
        assert_eq!(l.launch.cuda_graphs.mode.as_deref(), Some("NONE"));
        assert_eq!(l.launch.speculative.unwrap().method, Speculation::Mtp);
        let l = parse("m --enable-lora --max-loras 4 --max-lora-rank 64");
        assert_eq!(
            l.launch.lora,
            Some(Lora { max_loras: 4, max_rank: 64, max_cpu_loras: 4, fully_sharded: false })
        );
        assert_eq!(parse("m --max-model-len auto").launch.max_model_len, MaxModelLen::Fit);
    }

    #[test]
    fn a_wrong_value_names_its_flag() {
        for text in [
            "--tensor-parallel-size two",
            "--max-model-len 1e99",
            "--gpu-memory-utilization x",
            "-sc.num_speculative_tokens=-3",
        ] {
            let error = super::parse(&words::shell(text, &[]).concat()).unwrap_err().to_string();
            assert!(error.starts_with("--"), "{text}: {error}");
        }
    }
}
