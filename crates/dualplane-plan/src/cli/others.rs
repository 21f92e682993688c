//! Command lines of SGLang, TGI and TensorRT-LLM: what the host plane and their GPU planes use.

use super::numbers::{count, human, real};
use super::words::{self, Given, Known, Take::Switch, Take::Value};
use super::{CommandLine, EngineKind, sglang};
use crate::launch::MaxModelLen;
use crate::outcome::PlanError;

/// Source: text-generation-inference launcher/src/main.rs.
pub(super) const TGI: &[Known] = &[
    ("model", &["model-id"], Value),
    ("tp", &["num-shard"], Value),
    ("context-length", &["max-total-tokens"], Value),
    ("max-running-requests", &["max-concurrent-requests"], Value),
    ("chunked-prefill-size", &["max-batch-prefill-tokens"], Value),
    ("max-total-tokens", &["max-batch-total-tokens"], Value),
    ("mem-fraction-static", &["cuda-memory-fraction"], Value),
    ("kv-cache-dtype", &[], Value),
    ("dtype", &[], Value),
    ("quantization", &["quantize"], Value),
    ("max-input-tokens", &["max-input-length"], Value),
    ("port", &["p"], Value),
    ("hostname", &[], Value),
    ("trust-remote-code", &[], Switch),
];

/// Source: TensorRT-LLM tensorrt_llm/commands/serve.py.
pub(super) const TENSORRT_LLM: &[Known] = &[
    ("model", &[], Value),
    ("tp", &["tp-size", "tensor-parallel-size"], Value),
    ("pp", &["pp-size", "pipeline-parallel-size"], Value),
    ("ep", &["ep-size", "moe-expert-parallel-size"], Value),
    ("page-size", &["tokens-per-block"], Value),
    ("context-length", &["max-seq-len"], Value),
    ("max-running-requests", &["max-batch-size"], Value),
    ("chunked-prefill-size", &["max-num-tokens"], Value),
    ("mem-fraction-static", &["kv-cache-free-gpu-memory-fraction", "free-gpu-memory-fraction"], Value),
    ("kv-cache-dtype", &[], Value),
    ("backend", &[], Value),
    ("host", &[], Value),
    ("port", &[], Value),
    ("trust-remote-code", &[], Switch),
];

pub(super) fn parse(engine: EngineKind, args: &[String]) -> Result<CommandLine, PlanError> {
    let table = match engine {
        EngineKind::Sglang => sglang::FLAGS,
        EngineKind::Tgi => TGI,
        _ => TENSORRT_LLM,
    };
    let words = words::flags(args, table);
    let mut line = CommandLine::of(engine);
    line.model = words.loose.into_iter().next();
    for given in &words.flags {
        if !given.known {
            line.unknown_flags.push(given.flag());
        } else if engine == EngineKind::Sglang && sglang::take(given, &mut line)? {
        } else if !launch(given, &mut line)? {
            host(given, &mut line)?;
        }
    }
    sglang::finish(&mut line);
    Ok(line)
}

fn launch(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    let l = &mut line.launch;
    match given.name.as_str() {
        "model" => line.model = Some(given.value().to_owned()),
        "tp" => l.tp = count(given)?,
        "pp" => l.pp = count(given)?,
        "dp" => l.dp = count(given)?,
        "ep" => l.expert_parallel = count(given)? > 1,
        "context-length" => l.max_model_len = MaxModelLen::Tokens(count(given)?),
        "mem-fraction-static" => l.gpu_memory_utilization = Some(real(given)?),
        "max-running-requests" => l.max_num_seqs = Some(count(given)?),
        // -1 turns chunking off.
        "chunked-prefill-size" => l.max_num_batched_tokens = human(given.value()),
        "max-total-tokens" => l.num_gpu_blocks_override = Some(count(given)?),
        "page-size" => l.block_size = Some(count(given)?),
        "kv-cache-dtype" => l.kv_cache_dtype = given.value().to_owned(),
        "dtype" => l.dtype = given.value().to_owned(),
        "quantization" => l.quantization = Some(given.value().to_owned()),
        "load-format" => l.load_format = given.value().to_owned(),
        "disable-cuda-graph" => l.enforce_eager = given.on,
        "cuda-graph-max-bs" => l.cuda_graphs.max_size = Some(count(given)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn host(given: &Given, line: &mut CommandLine) -> Result<(), PlanError> {
    let h = &mut line.host;
    match given.name.as_str() {
        "enable-hierarchical-cache" if given.on => {
            h.hicache_ratio.get_or_insert(2.0);
        }
        "hicache-ratio" => h.hicache_ratio = Some(real(given)?),
        // GB of 10^9 bytes for each rank (SGLang mem_cache/memory_pool_host.py); 0 leaves it to the ratio.
        "hicache-size" => {
            h.hicache_bytes = Some((real(given)?.min(1e6) * 1e9) as u64).filter(|b| *b > 0);
        }
        "nnodes" => {
            h.nodes = count(given)?;
            h.several_nodes = h.nodes > 1;
        }
        "max-input-tokens" => line.tgi.max_input_tokens = Some(count(given)?),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(engine: EngineKind, text: &str) -> CommandLine {
        super::parse(engine, &words::shell(text, &[]).concat()).unwrap()
    }

    #[test]
    fn each_engine_names_things_its_way() {
        let l = parse(
            EngineKind::Sglang,
            "--model-path a/b --tp-size 4 --mem-fraction-static 0.85 --enable-hierarchical-cache --hicache-size 98 --foo",
        );
        assert_eq!((l.launch.tp, l.launch.gpu_memory_utilization), (4, Some(0.85)));
        assert_eq!((l.host.hicache_ratio, l.host.hicache_bytes), (Some(2.0), Some(98_000_000_000)));
        assert_eq!(l.unknown_flags, ["--foo"]);
        let l = parse(EngineKind::Tgi, "--model-id a/b --num-shard 2 --quantize awq");
        assert_eq!((l.launch.tp, l.launch.quantization.as_deref()), (2, Some("awq")));
    }
}
