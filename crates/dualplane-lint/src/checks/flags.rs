//! Command lines: values that leave no room, and processes that multiply memory.

use dualplane_base::json::{list, str_at, text_of};
use dualplane_engines::command_line::{flags, split, value};
use dualplane_plan::cli::{knows_all_flags, nearest};
use dualplane_plan::repair::default_utilisation;
use dualplane_plan::{EngineKind, MaxModelLen};

use super::{Said, Server};

/// Above it, less than 3 % of a card are left for CUDA's context, graphs and collectives, which no engine counts.
const SHARE: f64 = 0.97;
/// SGLang's share is what is static: a step, its graphs and all else stand outside. SGLang itself keeps a tenth of a card and more
/// (server_args.py).
const STATIC: f64 = 0.93;
/// TensorRT-LLM's share is one of what is free once the model is loaded (0.9; KvCacheConfig).
const OF_FREE: f64 = 0.95;
/// TGI's `TGI_WIGGLE_ROOM` (0.9; models/globals.py), in thousandths.
const ROOM: u64 = 960;
/// llama.cpp's `--fit-target` (1024 MiB; common/arg.cpp): CUDA's context alone takes half of it.
const FIT_TARGET: u64 = 512 << 20;

const UTILIZATION: &str = "--gpu-memory-utilization";
/// vLLM's own default from 0.20 on.
const LESS: &str = "0.92";

fn share(s: &Server<'_>) -> Option<f64> {
    let l = &s.plan.as_ref()?.line().launch;
    let planned = s.plan.as_ref()?;
    if planned.contradiction.is_some() || l.engine != EngineKind::Vllm || l.kv_cache_memory_bytes.is_some() {
        return None;
    }
    Some(l.gpu_memory_utilization.unwrap_or_else(|| default_utilisation(l.version)))
}

/// The engine's own word for how much of a card it takes, where that leaves too little.
pub(super) fn share_too_high(s: &Server<'_>) -> Option<Said> {
    let planned = s.plan.as_ref()?;
    let l = &planned.line().launch;
    let given = l.gpu_memory_utilization.filter(|v| *v <= 1.0);
    match l.engine {
        EngineKind::Vllm => vllm_share_too_high(s),
        _ if planned.contradiction.is_some() => None,
        EngineKind::Sglang => {
            let share = given.filter(|v| *v > STATIC)?;
            let message = format!(
                "--mem-fraction-static {share} leaves {:.1} % of the GPU for activations, CUDA graphs and NCCL, which stand outside \
                 of it: a long prompt ends the server with an out-of-memory error",
                (1.0 - share) * 100.0
            );
            let said = Said::new(message, "set --mem-fraction-static 0.85").at("/args");
            Some(said.flags(s.c, &[("--mem-fraction-static", "0.85".to_owned())]))
        }
        EngineKind::TensorrtLlm => {
            let share = given.filter(|v| *v > OF_FREE)?;
            let message = format!(
                "the KV cache takes {share} of what the loaded model leaves free: {:.1} % of that remain for a step that is larger \
                 than the one that was tried at the start",
                (1.0 - share) * 100.0
            );
            Some(Said::new(message, "set --kv_cache_free_gpu_memory_fraction 0.9").at("/args"))
        }
        EngineKind::Tgi => {
            let room = planned.line().tgi.room.filter(|r| *r > ROOM)?;
            let message = format!(
                "the room of TGI_WIGGLE_ROOM, {}, leaves {:.1} % of the GPU for what the warm-up did not take: a longer batch ends the shard",
                room as f64 / 1000.0,
                100.0 - room as f64 / 10.0
            );
            Some(Said::new(message, "set TGI_WIGGLE_ROOM to 0.9, or remove it").at("/env"))
        }
        EngineKind::LlamaCpp => {
            let target = planned.line().llama_cpp.fit_target.filter(|t| *t < FIT_TARGET)?;
            let message = format!(
                "--fit-target leaves {} MiB of the GPU free, and CUDA's context and its buffers take more: the first long prompt \
                 ends the server",
                target >> 20
            );
            let said = Said::new(message, "set --fit-target 1024").at("/args");
            Some(said.flags(s.c, &[("--fit-target", "1024".to_owned())]))
        }
    }
}

fn vllm_share_too_high(s: &Server<'_>) -> Option<Said> {
    let share = share(s).filter(|v| *v > SHARE && *v <= 1.0)?;
    let message = format!(
        "--gpu-memory-utilization {share} leaves {:.1} % of the GPU for CUDA's context, graphs and NCCL, which the engine \
         does not count: a request ends it with an out-of-memory error",
        (1.0 - share) * 100.0
    );
    let said = Said::new(message, format!("set {UTILIZATION} {LESS}")).at("/args");
    Some(said.flags(s.c, &[(UTILIZATION, LESS.to_owned())]))
}

pub(super) fn edge_of_three(s: &Server<'_>) -> Option<Said> {
    let planned = s.plan.as_ref()?;
    let l = &planned.line().launch;
    // Where the plan knows the answer, it says it.
    if planned.answer.as_ref().is_some_and(|a| a.plan.is_ok()) {
        return None;
    }
    let share = l.gpu_memory_utilization.filter(|v| *v >= 0.95 && *v <= SHARE)?;
    let seqs = l.max_num_seqs.filter(|n| *n >= 128)?;
    let MaxModelLen::Tokens(length) = l.max_model_len else { return None };
    if length < 8192 {
        return None;
    }
    let message = format!(
        "--max-model-len {length}, --max-num-seqs {seqs} and --gpu-memory-utilization {share} are large at once: the peak of \
         one step and the KV cache meet at the edge of the GPU"
    );
    let fix = "set --gpu-memory-utilization 0.9, or --max-num-seqs 64; `dualplane plan --manifest` computes what fits";
    Some(Said::new(message, fix).at("/args"))
}

/// How a GPU is shared, by its resource or the labels of the node.
fn shared(s: &Server<'_>) -> Option<String> {
    let limits = s.c.pointer("/resources/limits")?.as_object()?;
    if let Some(name) = limits.keys().find(|k| k.starts_with("nvidia.com/") && k.ends_with(".shared")) {
        return Some(name.clone());
    }
    let selector = s.pod.spec.get("nodeSelector")?.as_object()?;
    let of = |key: &str| selector.get(key).map(text_of);
    // The device plugin's MPS divides memory.
    let slices = |v: &String| v == "time-slicing" || v == "time-sharing";
    let how = of("nvidia.com/gpu.sharing-strategy").filter(slices);
    let how = how.or_else(|| of("cloud.google.com/gke-gpu-sharing-strategy").filter(slices));
    how.or_else(|| of("nvidia.com/gpu.product").filter(|p| p.ends_with("-SHARED")))
}

pub(super) fn share_of_shared_gpu(s: &Server<'_>) -> Option<Said> {
    let how = shared(s)?;
    let share = share(s).filter(|v| *v > 0.5)?;
    let message = format!(
        "the GPU is shared ({how}), nothing divides its memory, and vLLM takes {share} of all of it: the second pod on it \
         finds too little free memory and ends"
    );
    let fix = "set --gpu-memory-utilization to 0.9 divided by the pods that share the GPU: 0.45 for two";
    Some(Said::new(message, fix).at("/args"))
}

pub(super) fn servers_share_gpu(s: &Server<'_>) -> Option<Said> {
    let how = list(s.c, "/env")
        .iter()
        .find(|e| {
            str_at(e, "/name") == "NVIDIA_VISIBLE_DEVICES"
                && !matches!(str_at(e, "/value"), "" | "none" | "void")
        })
        .map(|e| str_at(e, "/value").to_owned())?;
    let others = list(s.pod.spec, "/containers").iter().filter(|c| {
        str_at(c, "/name") != str_at(s.c, "/name")
            && list(c, "/env")
                .iter()
                .any(|e| str_at(e, "/name") == "NVIDIA_VISIBLE_DEVICES" && str_at(e, "/value") == how)
    });
    let other = others.into_iter().next()?;
    let share = share(s)?;
    let message = format!(
        "containers {} and {} both see GPU `{how}`, and this one takes {share} of its memory: the second to start finds too \
         little",
        str_at(s.c, "/name"),
        str_at(other, "/name")
    );
    let fix =
        "ask for nvidia.com/gpu in each container instead, or set --gpu-memory-utilization 0.45 in both";
    Some(Said::new(message, fix).at("/env"))
}

pub(super) fn flag_misspelt(s: &Server<'_>) -> Option<Said> {
    let line = s.plan.as_ref()?.line();
    if !knows_all_flags(line.launch.engine) {
        return None;
    }
    if let Some(flag) = line.lacking().filter(|_| line.launch.version_known) {
        let message = format!("vLLM {} has no flag {} and ends at its start", line.launch.version, flag.flag);
        return Some(Said::new(message, flag.why()).at("/args"));
    }
    let (wrong, right) =
        line.unknown_flags.iter().find_map(|f| Some((f, nearest(line.launch.engine, f)?)))?;
    // A flag of a newer release may look like an older one: only a slip of the same length or nearly so is one.
    let near = wrong.trim_start_matches('-').len().abs_diff(right.trim_start_matches('-').len()) <= 2;
    near.then(|| {
        let message = format!("vLLM has no flag {wrong} and ends at its start");
        Said::new(message, format!("write {right}")).at("/args")
    })
}

/// Servers of Python's web frameworks that start a process for each worker.
const WEB: [&str; 4] = ["uvicorn", "gunicorn", "hypercorn", "granian"];

pub(super) fn workers_multiply(s: &Server<'_>) -> Option<Said> {
    let words: Vec<String> = list(s.c, "/command").iter().chain(list(s.c, "/args")).map(text_of).collect();
    let env: Vec<(String, String)> = list(s.c, "/env")
        .iter()
        .map(|e| (str_at(e, "/name").to_owned(), str_at(e, "/value").to_owned()))
        .collect();
    let by_flag = split(&words, &env).into_iter().find_map(|command| {
        let web = command
            .iter()
            .find(|w| WEB.contains(&dualplane_engines::command_line::base(w)) || w.starts_with("uvicorn."))?;
        let given = flags(&command, &[]);
        let n: u64 = value(&given, &["--workers", "-w"])?.parse().ok()?;
        Some((format!("{web} --workers {n}"), n))
    });
    let by_env = || {
        let (name, v) = env.iter().find(|(n, _)| n == "WEB_CONCURRENCY" || n == "UVICORN_WORKERS")?;
        Some((format!("{name}={v}"), v.parse().ok()?))
    };
    let (how, n) = by_flag.or_else(by_env).filter(|(_, n)| *n > 1)?;
    let limit = super::host::amount(s.c.pointer("/resources/limits/memory"));
    let each = limit.map_or_else(String::new, |l| {
        format!("; of the limit of {l}, {} are left for each", dualplane_base::units::Bytes(l.0 / n))
    });
    let message =
        format!("{how} starts {n} processes, and each loads the model into RAM and onto the GPU{each}");
    let fix = "start 1 worker, and more replicas with a GPU each";
    Some(Said::new(message, fix).at("/args"))
}

pub(super) fn queue_unbounded(s: &Server<'_>) -> Option<Said> {
    let line = s.plan.as_ref()?.line();
    if line.launch.engine != EngineKind::Sglang {
        return None;
    }
    let words: Vec<String> = list(s.c, "/command").iter().chain(list(s.c, "/args")).map(text_of).collect();
    let bounded = words.iter().any(|w| w.contains("max-queued-requests"));
    (!bounded).then(|| {
        let message = "SGLang queues without a bound: under overload, waiting requests fill host RAM, and all of them time out";
        Said::new(message, "add --max-queued-requests 256, so that a client hears 503 at once").at("/args")
    })
}
