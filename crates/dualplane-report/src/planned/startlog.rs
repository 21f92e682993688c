//! What a start-up log of vLLM prints: the launch, and the figures that a plan predicts.

use dualplane_plan::cli::{self, CommandLine};
use dualplane_plan::{PlanError, Printed, Version};

use dualplane_base::units::Bytes;
use dualplane_core::facts::Facts;

/// A start-up log.
#[derive(Debug, Clone, PartialEq)]
pub struct StartLog {
    /// The launch as the log tells it.
    pub line: CommandLine,
    /// The figures.
    pub printed: Printed,
}

/// Reads a log whose facts were extracted.
///
/// # Errors
/// [`PlanError::Unsupported`] where it is no start-up log of vLLM, [`PlanError::Contradiction`] where its arguments are
/// not what the flags take.
pub fn read(facts: &Facts) -> Result<StartLog, PlanError> {
    let printed = printed(facts);
    let args = arguments(facts);
    let vllm = facts.hits.iter().any(|h| h.engine.as_deref() == Some("vllm"));
    if !vllm || (args.is_empty() && printed == Printed::default()) {
        return Err(PlanError::unsupported("the log does not show a vLLM start-up"));
    }
    let mut line = cli::parse(&args, &[], Some("vllm"))?;
    if let Some(v) = facts.engine.version.as_deref().and_then(Version::parse) {
        line.launch.version = v;
        line.launch.version_known = true;
    }
    Ok(StartLog { line, printed })
}

fn printed(facts: &Facts) -> Printed {
    // A rank each prints its own: the smallest pool and tokens decide, the largest weights are the fullest card's.
    let all = |ids: &[&str], group: &str| -> Vec<u64> {
        let hits = facts.hits.iter().filter(|h| ids.contains(&h.id.as_str()));
        hits.filter_map(|h| h.memory(group).map(|Bytes(b)| b)).collect()
    };
    let number = |id: &str, group: &str| -> Vec<f64> {
        facts
            .hits
            .iter()
            .filter(|h| h.id == id)
            .filter_map(|h| h.number(group))
            .filter(|n| *n >= 0.0)
            .collect()
    };
    let profiles = ["vllm.profile_results_v0", "vllm.profile_parts_v0"];
    let pool = all(&["vllm.kv_available"], "available").into_iter().chain(all(&profiles, "kv_size")).min();
    let concurrency = number("vllm.max_concurrency", "concurrency").into_iter().reduce(f64::min);
    let len = number("vllm.max_concurrency", "max_model_len").first().copied();
    let len = len.or_else(|| number("vllm.max_model_len", "max_model_len").first().copied());
    Printed {
        total: all(&["vllm.profile_results_v0", "vllm.profile_budget_v0"], "total").into_iter().min(),
        weights: all(&["vllm.weights", "vllm.weights_v0", "vllm.profile_parts_v0"], "weights")
            .into_iter()
            .max(),
        activation: all(&["vllm.profile_parts_v0"], "activation").into_iter().max(),
        non_torch: all(&profiles, "non_torch").into_iter().max(),
        graph_estimate: all(&["vllm.graph_estimate"], "graphs").into_iter().max(),
        pool,
        tokens: number("vllm.kv_tokens", "kv_tokens").into_iter().reduce(f64::min).map(|n| n as u64),
        concurrency_hundredths: concurrency.map(|c| (c * 100.0).round() as u64),
        max_model_len: len.map(|n| n as u64),
    }
}

/// The card's memory, where the log prints it.
pub(super) fn total(facts: &Facts) -> Option<u64> {
    printed(facts).total
}

/// The settings that the log prints, as words of a command line.
pub(super) fn arguments(facts: &Facts) -> Vec<String> {
    facts.engine.printed.iter().flat_map(|f| flag(&f.name, &f.value)).collect()
}

fn flag(name: &str, value: &str) -> Vec<String> {
    let flag = format!("--{name}");
    match value {
        "" => Vec::new(),
        "True" => vec![flag],
        "False" => vec![format!("--no-{name}")],
        v if v.starts_with('{') => vec![flag, json(v)],
        v if v.starts_with('[') => {
            let words =
                v.trim_matches(['[', ']']).split(',').map(|w| w.trim().trim_matches(['\'', '"']).to_owned());
            std::iter::once(flag).chain(words.filter(|w| !w.is_empty())).collect()
        }
        // Sub-words of the engine's own: `LoadFormat.AUTO`.
        v if name == "load-format" => {
            vec![format!("{flag}={}", v.rsplit_once('.').map_or(v.to_owned(), |(_, v)| v.to_lowercase()))]
        }
        v => vec![format!("{flag}={v}")],
    }
}

/// A Python dictionary as JSON.
fn json(text: &str) -> String {
    text.replace('\'', "\"").replace("True", "true").replace("False", "false").replace("None", "null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_core::evidence::{Bundle, RawFile};
    use dualplane_core::facts;
    use dualplane_core::knowledge::Knowledge;
    use dualplane_plan::MaxModelLen;

    #[test]
    fn a_log_tells_its_launch_and_its_figures() {
        let text = "INFO 10-27 09:43:05 [api_server.py:1839] vLLM API server version 0.11.0\n\
            INFO 10-27 09:43:05 [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 8192, 'enforce_eager': True, 'enable_prefix_caching': False, 'speculative_config': {'method': 'ngram', 'num_speculative_tokens': 3}, 'served_model_name': ['a', 'b']}\n\
            (EngineCore_DP0 pid=214) INFO 12-02 06:12:19 [core.py:93] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', speculative_config=None, dtype=torch.bfloat16, max_seq_len=40960, tensor_parallel_size=2, quantization=None, kv_cache_dtype=auto, load_format=LoadFormat.AUTO\n\
            (EngineCore_DP0 pid=1) INFO 02-15 05:33:42 [gpu_model_runner.py:4216] Model loading took 7.63 GiB memory and 40.360672 seconds\n\
            (Worker_TP0 pid=2) INFO 09-30 11:20:11 [gpu_worker.py:298] Available KV cache memory: 60.57 GiB\n\
            (Worker_TP1 pid=3) INFO 09-30 11:20:11 [gpu_worker.py:298] Available KV cache memory: 60.41 GiB\n\
            (EngineCore_DP0 pid=1) INFO 09-30 11:20:11 [kv_cache_utils.py:1087] GPU KV cache size: 879,776 tokens\n\
            (EngineCore_DP0 pid=1) INFO 09-30 11:20:11 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 107.39x\n";
        let bundle = Bundle::from_files(vec![RawFile::new("start.log", text)]);
        let facts = facts::extract(&bundle, &Knowledge::embedded().unwrap());
        let log = read(&facts).unwrap();
        let l = &log.line.launch;
        assert_eq!((l.version, l.tp, l.enforce_eager), (Version(0, 11, 0), 2, true));
        assert_eq!((l.max_model_len, l.prefix_caching), (MaxModelLen::Tokens(8192), Some(false)));
        assert_eq!(l.speculative.as_ref().map(|s| s.num_tokens), Some(3));
        assert_eq!(log.line.model.as_deref(), Some("Qwen/Qwen3-8B"));
        assert!(log.line.unknown_flags.is_empty(), "{:?}", log.line.unknown_flags);
        let p = &log.printed;
        assert_eq!(p.pool.map(|b| b >> 20), Some((60.41_f64 * 1024.0) as u64));
        assert_eq!(
            (p.tokens, p.concurrency_hundredths, p.max_model_len),
            (Some(879_776), Some(10_739), Some(8192))
        );
    }
}
