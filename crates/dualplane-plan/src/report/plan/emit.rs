//! What to paste: flags, a `resources` block with its volume, Helm values. Whole objects stand in `object.rs`.

use std::fmt::Write as _;

use super::object;
use crate::{Answer, EngineKind, MaxModelLen, catalogue};
use dualplane_base::units::{Bytes, GIB};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    /// Flags of the engine.
    Flags,
    /// `resources`, `volumeMounts` and `volumes` of a pod.
    Resources,
    /// Values for a chart.
    Values,
    /// A whole Deployment; a LeaderWorkerSet where several pods serve one model.
    Manifest,
    /// A whole StatefulSet, with a volume that keeps the weights.
    StatefulSet,
}

/// Renders one of them.
#[must_use]
pub fn emit(a: &Answer, what: Emit) -> String {
    match what {
        Emit::Flags => flags(a),
        Emit::Resources => resources(a),
        Emit::Values => values(a),
        Emit::Manifest if a.line.pods() > 1 => object::group(a),
        Emit::Manifest => object::deployment(a),
        Emit::StatefulSet => object::stateful_set(a),
    }
}

/// The model as an engine can fetch it: a short name is none to a hub.
pub(super) fn served(a: &Answer) -> String {
    let short = !a.model.contains('/') || a.model.contains(':');
    let id = catalogue::id_of(&a.model).filter(|_| short && !a.model.starts_with(['/', '.']));
    id.map_or_else(|| a.model.clone(), str::to_owned)
}

/// The flags that decide memory, with their resolved values, so that an upgrade's new default changes nothing.
pub(super) fn list(a: &Answer) -> Vec<(&'static str, String)> {
    let l = &a.line.launch;
    let mut out = Vec::new();
    let Ok(p) = &a.plan else { return out };
    if l.engine != EngineKind::Vllm {
        return out;
    }
    let kv = &p.gpu.kv_cache;
    out.push(("tensor-parallel-size", l.tp.to_string()));
    for (name, n) in [
        ("pipeline-parallel-size", l.pp),
        ("data-parallel-size", l.dp),
        ("decode-context-parallel-size", l.dcp),
        ("prefill-context-parallel-size", l.pcp),
        ("api-server-count", l.api_servers),
        ("nnodes", a.line.host.nodes),
        ("data-parallel-size-local", a.line.host.local_copies.filter(|n| *n < l.dp).unwrap_or(0)),
    ] {
        // One local copy is none of the defaults.
        if n > 1 || n == 1 && name == "data-parallel-size-local" {
            out.push((name, n.to_string()));
        }
    }
    let len =
        if l.max_model_len == MaxModelLen::Fit { "-1".to_owned() } else { kv.max_model_len.to_string() };
    out.push(("max-model-len", len));
    out.push(("max-num-seqs", p.resolved.max_num_seqs.to_string()));
    out.push(("max-num-batched-tokens", p.resolved.max_num_batched_tokens.to_string()));
    if let Some(bytes) = l.kv_cache_memory_bytes {
        out.push(("kv-cache-memory-bytes", bytes.to_string()));
    }
    if p.gpu.total_bytes > 0 {
        let share = l.gpu_memory_utilization.unwrap_or_else(|| {
            (p.gpu.requested_bytes as f64 / p.gpu.total_bytes as f64 * 100.0).round() / 100.0
        });
        out.push(("gpu-memory-utilization", share.to_string()));
    }
    out.extend(given(a));
    out
}

/// Flags that were given and without which the plan would be another one.
fn given(a: &Answer) -> Vec<(&'static str, String)> {
    let l = &a.line.launch;
    let mut out = Vec::new();
    let mut text = |name, value: Option<String>| out.extend(value.map(|v| (name, v)));
    let gib = |bytes: u64| (bytes > 0).then(|| (bytes as f64 / GIB as f64).to_string());
    let other = |v: &str| (v != "auto").then(|| v.to_owned());
    text("kv-cache-dtype", other(&l.kv_cache_dtype));
    text("dtype", other(&l.dtype));
    text("load-format", other(&l.load_format));
    text("quantization", l.quantization.clone());
    text("block-size", l.block_size.map(|n| n.to_string()));
    text("num-gpu-blocks-override", l.num_gpu_blocks_override.map(|n| n.to_string()));
    text("attention-backend", l.asked_backend().map(ToOwned::to_owned));
    text("mamba-cache-mode", l.mamba_cache_mode.clone());
    text("mamba-ssm-cache-dtype", l.mamba_ssm_cache_dtype.clone());
    text("cpu-offload-gb", gib(l.cpu_offload_bytes));
    text("kv-offloading-size", gib(l.kv_offload_bytes));
    text("max-cudagraph-capture-size", l.cuda_graphs.max_size.map(|n| n.to_string()));
    text("compilation-config.cudagraph_mode", l.cuda_graphs.mode.clone());
    if let Some(lora) = l.lora {
        text("enable-lora", Some("true".into()));
        text("max-loras", Some(lora.max_loras.to_string()));
        text("max-lora-rank", Some(lora.max_rank.to_string()));
        text("max-cpu-loras", Some(lora.max_cpu_loras.to_string()));
        text("fully-sharded-loras", lora.fully_sharded.then(|| "true".into()));
    }
    for (name, on) in [
        ("enforce-eager", l.enforce_eager),
        ("enable-expert-parallel", l.expert_parallel),
        ("language-model-only", l.language_model_only),
        ("skip-mm-profiling", l.skip_mm_profiling),
        ("trust-remote-code", l.trust_remote_code),
        ("disable-hybrid-kv-cache-manager", l.disable_hybrid_kv_cache_manager),
        ("no-enable-prefix-caching", l.prefix_caching == Some(false)),
        ("no-enable-chunked-prefill", l.chunked_prefill == Some(false)),
        ("no-async-scheduling", l.async_scheduling == Some(false)),
    ] {
        text(name, on.then(|| "true".into()));
    }
    if let Some(s) = &l.speculative {
        let method = serde_json::to_value(s.method).unwrap_or_default();
        let mut config = serde_json::json!({"method": method, "num_speculative_tokens": s.num_tokens});
        if let (Some(model), Some(map)) = (&s.model, config.as_object_mut()) {
            map.insert("model".into(), model.clone().into());
        }
        text("speculative-config", Some(config.to_string()));
    }
    if !a.line.overrides.is_empty() {
        text("hf-overrides", Some(serde_json::Value::Object(a.line.overrides.clone()).to_string()));
    }
    out
}

/// A flag as a command line takes it: a switch that is on stands alone.
pub(super) fn flag(name: &str, value: &str) -> String {
    if value == "true" { format!("--{name}") } else { format!("--{name}={value}") }
}

fn flags(a: &Answer) -> String {
    let list = list(a);
    if list.is_empty() {
        return format!("# no flags: {}\n", comment(&a.message()));
    }
    let mut out = String::new();
    for (name, value) in list {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{}", word(&flag(name, &value)));
    }
    out
}

/// A word of a shell.
pub(super) fn word(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./:,+".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The device of the resource list: a MIG profile has a name of its own.
pub(super) fn device(a: &Answer) -> String {
    let profile = a.gpu.name.split_once(':').map(|(_, p)| p);
    profile.map_or_else(|| "nvidia.com/gpu".into(), |p| format!("nvidia.com/mig-{p}"))
}

/// CPUs: a busy loop for each rank and each API server, one for the engine; the limit leaves room for loading.
pub(super) fn cpus(a: &Answer) -> (u64, u64) {
    let n = a.line.launch.api_servers.saturating_add(a.gpus_of_pod()).saturating_add(1).max(4);
    (n, n.saturating_mul(2))
}

fn resources(a: &Answer) -> String {
    let h = &a.host;
    let gpus = a.line.host.pod_gpus().unwrap_or_else(|| a.gpus_of_pod());
    let (request, limit) = (h.request_bytes / GIB, h.limit_bytes / GIB);
    let (cpu, most) = cpus(a);
    let device = device(a);
    let mut out = format!(
        "resources:\n  requests:\n    cpu: \"{cpu}\"  # one for each rank and server process, at least 4\n    memory: {request}Gi  # {}\n    {device}: {gpus}\n  limits:\n    cpu: \"{most}\"\n    memory: {limit}Gi  # {}\n    {device}: {gpus}\n",
        comment(h.arithmetic.first().map_or("", String::as_str)),
        comment(h.arithmetic.get(1).map_or("", String::as_str)),
    );
    if h.shm_size_bytes > 0 {
        let _ = write!(
            out,
            "volumeMounts:\n  - name: shm\n    mountPath: /dev/shm\nvolumes:\n  - name: shm\n    emptyDir:\n      medium: Memory\n      sizeLimit: {}Gi  # shared memory of up to {}, charged to the pod\n",
            h.shm_size_bytes / GIB,
            Bytes(h.plan.shm_bytes.high)
        );
    }
    out
}

fn values(a: &Answer) -> String {
    let mut out = String::from("model: ");
    let _ = writeln!(out, "{}", quoted(&served(a)));
    out.push_str("engineArgs:\n");
    for (name, value) in list(a) {
        let _ = writeln!(out, "  {name}: {}", quoted(&value));
    }
    out.push_str(&resources(a));
    out
}

/// A string that YAML reads as one.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::String(dualplane_base::text::printable(text).into_owned()).to_string()
}

/// One line behind a `#`.
fn comment(text: &str) -> String {
    dualplane_base::text::printable(&text.replace(['\n', '\r'], " ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{embedded, place};
    use crate::host::Checkpoint;
    use crate::model::ModelFiles;
    use crate::{Model, Named, PlanError, Verdict, answer, cli, pasteable};

    fn ask(command: &str, card: &str) -> Result<(Named, crate::card::Placed, crate::Pasteable), PlanError> {
        let line = cli::parse(&[command.to_owned()], &[], None).unwrap();
        let id = line.model.clone().unwrap();
        let e = crate::catalogue::find(&id).unwrap();
        let files =
            ModelFiles { config: e.config(), hf_quant_config: e.hf_quant_config(), ..ModelFiles::default() };
        let model = Model::read(&files).unwrap();
        let named = Named { id, source: String::new(), model, gguf: None, files: Checkpoint::default() };
        let placed = place(&embedded().unwrap(), Some(card), None).unwrap();
        let p = pasteable(&named, &line, &placed, None)?;
        Ok((named, placed, p))
    }

    #[test]
    fn what_is_pasted_fits_when_it_is_planned() {
        for (command, card) in [
            ("vllm serve Qwen/Qwen3-8B --max-model-len 32768", "L4"),
            ("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 1.0 --enforce-eager", "H100-80GB"),
            ("vllm serve Qwen/Qwen3-32B --quantization fp8 --cpu-offload-gb 8", "L40S"),
            (
                "vllm serve Qwen/Qwen3-8B --enable-lora --max-lora-rank 64 --no-enable-prefix-caching -tp 2",
                "A10G",
            ),
            ("vllm serve Qwen/Qwen3-30B-A3B -tp 2 -ep --kv-cache-dtype fp8", "L40S"),
        ] {
            let (named, placed, p) = ask(command, card).unwrap();
            assert_eq!(p.answer.verdict(), Verdict::Fits, "{command}");
            let again =
                format!("vllm serve {} {}", named.id, emit(&p.answer, Emit::Flags).replace('\n', " "));
            let line = cli::parse(std::slice::from_ref(&again), &[], None).unwrap();
            assert!(line.unknown_flags.is_empty(), "{again}: {:?}", line.unknown_flags);
            let b = answer(&named, &line, &placed, None).unwrap();
            let pool = |a: &Answer| a.plan.as_ref().unwrap().gpu.kv_cache.clone();
            assert_eq!((b.verdict(), pool(&b)), (Verdict::Fits, pool(&p.answer)), "{again}");
        }
        // Weights that no card of the kind holds leave nothing to paste.
        let e = ask("vllm serve meta-llama/Llama-3.1-70B-Instruct", "L4").unwrap_err().to_string();
        assert!(e.contains("nothing to paste") && e.contains("cuda_oom_load"), "{e}");
    }

    #[test]
    fn a_manifest_has_probes_from_the_load_time_and_names_that_kubernetes_takes() {
        let (_, _, p) = ask("vllm serve Qwen/Qwen3-32B -tp 2", "A100-80GB").unwrap();
        let text = emit(&p.answer, Emit::Manifest);
        assert!(
            text.contains("name: qwen3-32b\n")
                && text.contains("nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB"),
            "{text}"
        );
        assert!(text.contains("failureThreshold: 63 ") && text.contains("mountPath: /dev/shm"), "{text}");
        let text = emit(&p.answer, Emit::StatefulSet);
        // 65 GiB of weights, and room for what is written beside them.
        assert!(text.contains("kind: StatefulSet") && text.contains("storage: 80Gi"), "{text}");
        assert!(
            text.contains("clusterIP: None") && text.contains("mountPath: /root/.cache/huggingface"),
            "{text}"
        );
    }

    #[test]
    fn pods_that_serve_one_model_are_one_group() {
        let (_, _, p) = ask(
            "vllm serve meta-llama/Llama-3.1-405B-Instruct --nnodes 2 -tp 8 -pp 2 --max-model-len 32768",
            "H100",
        )
        .unwrap();
        let text = emit(&p.answer, Emit::Manifest);
        assert!(text.contains("kind: LeaderWorkerSet") && text.contains("    size: 2\n"), "{text}");
        for given in ["--nnodes=2 ", "--node-rank=$LWS_WORKER_INDEX --master-addr=$LWS_LEADER_ADDRESS"] {
            assert_eq!(text.matches(given).count(), 2, "{text}");
        }
        assert_eq!(text.matches("nvidia.com/gpu: \"8\"").count(), 4, "each pod has its own: {text}");
        assert_eq!(
            (text.matches("--headless").count(), text.matches("startupProbe").count()),
            (1, 1),
            "{text}"
        );
        let (_, _, p) = ask("vllm serve Qwen/Qwen3-8B -dp 4 --data-parallel-size-local 1", "H100").unwrap();
        let text = emit(&p.answer, Emit::Manifest);
        assert!(text.contains("    size: 4\n") && text.contains("--data-parallel-size-local=1"), "{text}");
        assert!(text.contains("--headless --data-parallel-start-rank=$((LWS_WORKER_INDEX * 1))"), "{text}");
    }
}
