//! `vllm serve MODEL ...` and `python -m vllm.entrypoints.openai.api_server --model ...`.

use serde_json::Value;

use super::numbers::{count, gib, human, real, wrong};
use super::vllm_flags::FLAGS;
use super::words::{self, Given};
use super::{CommandLine, EngineKind};
use crate::launch::{Lora, MaxModelLen, Speculation, Speculative};
use crate::outcome::PlanError;

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

pub(super) fn parse(args: &[String]) -> Result<CommandLine, PlanError> {
    let words = words::flags(args, FLAGS);
    let mut line = CommandLine::of(EngineKind::Vllm);
    line.model = words.loose.first().cloned();
    let mut parts = Parts::default();
    for given in &words.flags {
        if !given.known && !level(given, &mut line) {
            line.unknown_flags.push(given.flag());
        } else if !parallel(given, &mut line)?
            && !memory(given, &mut line)?
            && !caches(given, &mut line)?
            && !graphs(given, &mut line)?
            && !compose(given, &mut parts)?
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
        "nnodes" => line.host.several_nodes = count(given)? > 1,
        "data-parallel-size-local" => line.host.several_nodes = true,
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
            lora(parts, &|l| l.max_rank = n);
        }
        "max-cpu-loras" => parts.max_cpu_loras = Some(count(given)?),
        "fully-sharded-loras" => lora(parts, &|l| l.fully_sharded = given.on),
        "speculative-model" => {
            parts.speculative.insert("model".into(), given.value().into());
        }
        "num-speculative-tokens" => {
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

/// Settings with memory of their own that no formula here follows.
fn not_followed(given: &Given, line: &mut CommandLine) {
    let follow = matches!(
        given.name.as_str(),
        "hf-overrides"
            | "rope-scaling"
            | "config"
            | "additional-config"
            | "performance-mode"
            | "enable-dbo"
            | "cpu-offload-params"
            | "kv-transfer-config"
            | "mamba-cache-dtype"
            | "mamba-block-size"
            | "model-impl"
            | "disable-sliding-window"
            | "kv-sharing-fast-prefill"
            | "mm-processor-kwargs"
    );
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
        assert_eq!(l.not_followed, ["--hf-overrides {}"]);
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
