//! SGLang's command line: the flags that change memory.
//!
//! Source: SGLang srt/server_args.py 0.4.3 to 0.5.16, srt/arg_groups/fields of 0.5.23.

use super::CommandLine;
use super::numbers::{count, gib, human, real, wrong};
use super::words::{Given, Known, Take::Many, Take::Switch, Take::Value};
use crate::launch::{Speculation, Speculative};
use crate::outcome::PlanError;

pub(super) const FLAGS: &[Known] = &[
    ("model", &["model-path"], Value),
    ("tp", &["tp-size", "tensor-parallel-size"], Value),
    ("pp", &["pp-size", "pipeline-parallel-size"], Value),
    ("dp", &["dp-size", "data-parallel-size"], Value),
    ("ep", &["ep-size", "expert-parallel-size"], Value),
    ("context-length", &[], Value),
    ("mem-fraction-static", &[], Value),
    ("max-running-requests", &[], Value),
    ("max-total-tokens", &[], Value),
    ("max-prefill-tokens", &[], Value),
    ("chunked-prefill-size", &[], Value),
    ("cuda-graph-max-bs", &["cuda-graph-max-bs-decode"], Value),
    ("cuda-graph-bs", &["cuda-graph-bs-decode"], Many),
    ("cuda-graph-backend-decode", &[], Value),
    ("cuda-graph-backend-prefill", &[], Value),
    ("disable-cuda-graph", &[], Switch),
    ("disable-decode-cuda-graph", &[], Switch),
    ("disable-prefill-cuda-graph", &[], Switch),
    ("page-size", &[], Value),
    ("kv-cache-dtype", &[], Value),
    ("dtype", &[], Value),
    ("quantization", &[], Value),
    ("load-format", &[], Value),
    ("attention-backend", &[], Value),
    ("enable-dp-attention", &[], Switch),
    ("moe-a2a-backend", &[], Value),
    ("enable-deepep-moe", &[], Switch),
    ("disable-radix-cache", &[], Switch),
    ("disaggregation-mode", &[], Value),
    ("swa-full-tokens-ratio", &[], Value),
    ("disable-hybrid-swa-memory", &[], Switch),
    ("mamba-full-memory-ratio", &[], Value),
    ("max-mamba-cache-size", &[], Value),
    ("mamba-ssm-dtype", &[], Value),
    ("language-only", &["language-model-only"], Switch),
    ("cpu-offload-gb", &[], Value),
    ("speculative-algorithm", &["speculative-algo"], Value),
    ("speculative-draft-model-path", &["speculative-draft-model"], Value),
    ("speculative-num-steps", &[], Value),
    ("speculative-eagle-topk", &[], Value),
    ("speculative-num-draft-tokens", &[], Value),
    ("enable-hierarchical-cache", &["enable-hicache"], Switch),
    ("hicache-ratio", &[], Value),
    ("hicache-size", &[], Value),
    // Known to change VRAM; no formula here follows them.
    ("enable-unified-memory", &[], Switch),
    ("enable-kv-cache-sharding", &[], Switch),
    ("dcp-size", &[], Value),
    ("enable-lora", &[], Switch),
    ("lora-paths", &[], Many),
    ("enable-symm-mem", &[], Switch),
    ("enable-piecewise-cuda-graph", &[], Switch),
    ("enable-torch-compile", &[], Switch),
    ("offload-group-size", &[], Value),
    ("enable-int8-mamba-checkpoint", &[], Switch),
    ("enable-hisparse", &[], Switch),
    ("ep-num-redundant-experts", &[], Value),
    ("moe-dense-tp-size", &[], Value),
    ("enable-dp-lm-head", &[], Switch),
    ("prefill-only-disable-kv-cache", &[], Switch),
    ("cuda-graph-config", &[], Value),
    // No memory.
    ("host", &[], Value),
    ("port", &[], Value),
    ("trust-remote-code", &[], Switch),
    ("served-model-name", &[], Value),
    ("tokenizer-path", &[], Value),
    ("chat-template", &[], Value),
    ("tool-call-parser", &[], Value),
    ("reasoning-parser", &[], Value),
    ("api-key", &[], Value),
    ("log-level", &[], Value),
    ("random-seed", &[], Value),
    ("watchdog-timeout", &[], Value),
    ("schedule-conservativeness", &[], Value),
    ("schedule-policy", &[], Value),
    ("nnodes", &[], Value),
    ("node-rank", &[], Value),
    ("dist-init-addr", &[], Value),
    ("enable-metrics", &[], Switch),
];

const NOT_FOLLOWED: &[&str] = &[
    "enable-unified-memory",
    "enable-kv-cache-sharding",
    "dcp-size",
    "enable-lora",
    "lora-paths",
    "enable-symm-mem",
    "enable-piecewise-cuda-graph",
    "enable-torch-compile",
    "offload-group-size",
    "enable-int8-mamba-checkpoint",
    "enable-hisparse",
    "ep-num-redundant-experts",
    "moe-dense-tp-size",
    "enable-dp-lm-head",
    "prefill-only-disable-kv-cache",
    "cuda-graph-config",
];

/// Takes a flag that SGLang reads in its own way; false: it is read as other engines' are.
pub(super) fn take(given: &Given, line: &mut CommandLine) -> Result<bool, PlanError> {
    let l = &mut line.launch;
    let f = &mut l.sglang;
    match given.name.as_str() {
        // Anything below 1 turns chunks off.
        "chunked-prefill-size" => {
            f.whole_prompts = given.value().trim().starts_with('-') || given.value().trim() == "0";
            if !f.whole_prompts {
                l.max_num_batched_tokens = Some(count(given)?);
            }
        }
        "max-total-tokens" => f.max_total_tokens = Some(count(given)?),
        "max-prefill-tokens" => f.max_prefill_tokens = Some(count(given)?),
        "cuda-graph-bs" => {
            let sizes: Option<Vec<u64>> = given.values.iter().map(|v| human(v)).collect();
            l.cuda_graphs.sizes = Some(sizes.ok_or_else(|| wrong(given, "is not a list of batch sizes"))?);
        }
        "cuda-graph-backend-decode" => f.no_decode_graphs = given.value() == "disabled",
        "cuda-graph-backend-prefill" => f.no_prefill_graphs = given.value() == "disabled",
        "disable-decode-cuda-graph" => f.no_decode_graphs = given.on,
        "disable-prefill-cuda-graph" => f.no_prefill_graphs = given.on,
        "attention-backend" => l.attention_backend = Some(given.value().to_owned()),
        "enable-dp-attention" => f.dp_attention = given.on,
        "moe-a2a-backend" => f.deepep = given.value() == "deepep",
        "enable-deepep-moe" => f.deepep = given.on,
        "disable-radix-cache" => f.disable_radix_cache = given.on,
        "disaggregation-mode" => f.disaggregation = Some(given.value().to_owned()),
        "swa-full-tokens-ratio" => f.swa_full_tokens_ratio = Some(share(given)?),
        "disable-hybrid-swa-memory" => f.disable_hybrid_swa_memory = given.on,
        "mamba-full-memory-ratio" => f.mamba_full_memory_ratio = Some(real(given)?),
        "max-mamba-cache-size" => f.max_mamba_cache_size = Some(count(given)?),
        "mamba-ssm-dtype" => l.mamba_ssm_cache_dtype = Some(given.value().to_owned()),
        "language-only" => l.language_model_only = given.on,
        "cpu-offload-gb" => l.cpu_offload_bytes = gib(given)?,
        "speculative-algorithm" => speculation(line).method = method(given.value()),
        "speculative-draft-model-path" => speculation(line).model = Some(given.value().to_owned()),
        "speculative-num-draft-tokens" => speculation(line).num_tokens = count(given)?,
        "speculative-num-steps" | "speculative-eagle-topk" => {
            count(given)?;
        }
        name if NOT_FOLLOWED.contains(&name) => {
            let value =
                if given.values.is_empty() { String::new() } else { format!(" {}", given.values.join(" ")) };
            line.not_followed.push(format!("{}{value}", given.flag()));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The share of `--swa-full-tokens-ratio`, which the engine wants in (0, 1].
fn share(given: &Given) -> Result<f64, PlanError> {
    let value = real(given)?;
    if value > 0.0 && value <= 1.0 {
        Ok(value)
    } else {
        Err(wrong(
            given,
            "must be greater than 0 and at \
    most 1",
        ))
    }
}

fn speculation(line: &mut CommandLine) -> &mut Speculative {
    line.launch.speculative.get_or_insert(Speculative {
        method: Speculation::Other,
        num_tokens: 1,
        model: None,
    })
}

fn method(name: &str) -> Speculation {
    match name.to_ascii_uppercase().as_str() {
        // NEXTN is EAGLE with the checkpoint's own layers; with a model of its own EAGLE is a drafter.
        "NEXTN" => Speculation::Mtp,
        "EAGLE" => Speculation::Eagle,
        "EAGLE3" => Speculation::Eagle3,
        "STANDALONE" => Speculation::DraftModel,
        "NGRAM" => Speculation::Ngram,
        _ => Speculation::Other,
    }
}

/// After all flags: EAGLE without a drafter's path takes the checkpoint's own layers.
pub(super) fn finish(line: &mut CommandLine) {
    let own = line.model.clone();
    if let Some(s) = &mut line.launch.speculative
        && s.method == Speculation::Eagle
        && (s.model.is_none() || s.model == own)
    {
        s.method = Speculation::Mtp;
        s.model = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CommandLine, parse};
    use super::*;

    fn line(text: &str) -> CommandLine {
        parse(&[format!("python3 -m sglang.launch_server --model-path a/b {text}")], &[], None).unwrap()
    }

    #[test]
    fn flags_of_its_own() {
        let l = line(
            "--tp 8 --dp 8 --enable-dp-attention --chunked-prefill-size -1 --max-total-tokens 20000 --cuda-graph-bs 1 2 4 --enable-lora",
        );
        assert!(l.launch.sglang.dp_attention && l.launch.sglang.whole_prompts);
        assert_eq!(l.launch.sglang.max_total_tokens, Some(20_000));
        assert_eq!(l.launch.cuda_graphs.sizes, Some(vec![1, 2, 4]));
        assert_eq!((l.launch.gpus(), l.not_followed), (8, vec!["--enable-lora".to_owned()]));
    }

    #[test]
    fn eagle_without_a_drafter_is_the_models_own() {
        let method = |text| line(text).launch.speculative.map(|s| s.method);
        assert_eq!(
            method("--speculative-algorithm EAGLE --speculative-num-draft-tokens 4"),
            Some(Speculation::Mtp)
        );
        assert_eq!(
            method("--speculative-algorithm EAGLE --speculative-draft-model-path c/d"),
            Some(Speculation::Eagle)
        );
        assert_eq!(method("--port 1"), None);
    }
}
