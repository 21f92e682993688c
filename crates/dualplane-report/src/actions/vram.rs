//! VRAM ran out: at load, while serving, by fragmentation or because of a neighbour.

use serde_json::json;

use super::patch::container_patch;
use super::{Action, Context, Stage, Workload, floor_hundredth, names, on_node, workload};
use dualplane_base::units::{Bytes, GIB};
use dualplane_core::facts::vram::{self, VramOom};
use dualplane_core::verdict::Class;
use dualplane_plan::Version;
use dualplane_plan::repair::default_utilisation;

pub(super) fn advise(cx: &Context<'_>) -> Vec<Action> {
    let mut out = Vec::new();
    let oom = cx.verdict.trigger.as_ref().and_then(|t| vram::parse(&t.text)).unwrap_or_default();
    match cx.verdict.class {
        Class::CudaOomLoad => load(cx, &oom, &mut out),
        Class::CudaOomRuntime => runtime(cx, &oom, &mut out),
        Class::Fragmentation => fragmentation(cx, &oom, &mut out),
        _ => conflict(cx, &oom, &mut out),
    }
    verify(cx, &oom, &mut out);
    avoid(cx, &mut out);
    out
}

/// What engines accept as a share; they refuse other values at start, so nothing is computed from them.
fn is_share(u: f64) -> bool {
    u > 0.0 && u <= 1.0
}

/// The engine's share of the card: flag, else the default of its version (0.9, from vLLM 0.20.0 on 0.92).
pub(super) fn utilization(cx: &Context<'_>) -> Option<(f64, String)> {
    let e = &cx.facts.engine;
    match e.name.as_deref() {
        Some("vllm") => {
            const FLAGS: &[&str] = &["gpu-memory-utilization", "device-memory-utilization"];
            if e.flag(FLAGS).is_some() {
                // A value that is no share (a template's placeholder) is not the default either.
                let u = e.number(FLAGS).filter(|u| is_share(*u))?;
                return Some((u, format!("--gpu-memory-utilization {u} of the pod")));
            }
            if let Some(u) =
                cx.facts.hits.iter().rev().find_map(|h| h.number("utilization")).filter(|u| is_share(*u))
            {
                return Some((u, format!("utilisation {u} as the log prints it")));
            }
            let version = e.version.as_deref().and_then(Version::parse);
            let u = version.map_or(0.9, default_utilisation);
            let of = e
                .version
                .as_deref()
                .map_or("an unknown version; check it".to_owned(), |v| format!("vLLM {v}"));
            Some((u, format!("default {u} of {of}")))
        }
        Some("sglang") => {
            let printed = || {
                cx.facts
                    .hits
                    .iter()
                    .rev()
                    .find_map(|h| h.number("utilization"))
                    .filter(|u| is_share(*u))
                    .map(|u| (u, format!("mem_fraction_static {u} as the log prints it")))
            };
            e.number(&["mem-fraction-static"])
                .filter(|u| is_share(*u))
                .map(|u| (u, format!("--mem-fraction-static {u} of the pod")))
                .or_else(printed)
        }
        _ => None,
    }
}

pub(super) fn utilization_flag(cx: &Context<'_>) -> &'static str {
    if cx.facts.engine.is("sglang") { "--mem-fraction-static" } else { "--gpu-memory-utilization" }
}

fn load(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let need = oom.own().zip(oom.requested).map(|(own, req)| own.saturating_add(req));
    if let (Some(need), Some(total)) = (need, oom.total) {
        out.push(
            Action::new(Stage::Fix, format!("Give the model more VRAM per copy: it needs at least {need} on this GPU before it can serve, and the GPU has {total}"))
                .because(format!("this process {} + the request that failed {} = {need}, a lower bound: loading was not finished", oom.own().unwrap_or_default(), oom.requested.unwrap_or_default())),
        );
    }
    ggml(cx, oom, out);
    match cx.facts.engine.name.as_deref() {
        Some("vllm") => {
            tensor_parallel(cx, "--tensor-parallel-size", out);
            out.push(Action::new(Stage::Fix, "Or a quantised checkpoint of the same model (FP8 halves, AWQ/GPTQ 4 bit quarters the bytes of BF16 weights)"));
            if matches!(cx.verdict.phase, dualplane_core::verdict::Phase::Profile) {
                out.push(batched_tokens(cx));
            }
        }
        Some("sglang") => {
            tensor_parallel(cx, "--tp-size", out);
            out.push(Action::new(Stage::Fix, "Or a quantised checkpoint; for an error in graph capture lower --cuda-graph-max-bs and --mem-fraction-static instead"));
        }
        Some("tgi") => {
            out.push(prefill_tokens(cx));
            out.push(Action::new(Stage::Fix, "Or shard over more GPUs (--num-shard) or load quantised weights (--quantize)"));
        }
        Some("tensorrt_llm" | "triton") if trigger_id(cx).starts_with("tensorrt_llm.") => out.push(Action::new(
            Stage::Fix,
            "Lower kv_cache_config.free_gpu_memory_fraction, max_num_tokens or max_batch_size, or raise tensor_parallel_size; the component named in the message says which of them did not fit",
        )),
        Some("llama_cpp" | "ollama") => {}
        _ => out.push(Action::new(Stage::Fix, "Shard the model over more GPUs, or load quantised weights")),
    }
}

fn trigger_id<'a>(cx: &Context<'a>) -> &'a str {
    cx.verdict.trigger.as_ref().map_or("", |t| t.signature.as_str())
}

fn tensor_parallel(cx: &Context<'_>, flag: &str, out: &mut Vec<Action>) {
    let e = &cx.facts.engine;
    let now = e.number(&["tensor-parallel-size", "tp-size", "tp"]).unwrap_or(1.0).max(1.0) as u64;
    out.push(
        Action::new(
            Stage::Fix,
            format!(
                "Set {flag} {} (and the GPU count of the pod with it): the weights of each rank halve",
                now * 2
            ),
        )
        .because(format!("{flag} is {now} now; each doubling halves the sharded weights per GPU")),
    );
}

/// llama.cpp prints the weights of all layers and how many there are: the number that fits can be computed.
fn ggml(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    if !matches!(cx.facts.engine.name.as_deref(), Some("llama_cpp" | "ollama")) {
        return;
    }
    let layers = cx.facts.hits.iter().rev().find_map(|h| h.number("layers_gpu"));
    // Device lines say "NVIDIA GeForce RTX 3090"; the catalogue knows the card's driver-reported total.
    let card = cx.facts.hits.iter().find_map(|h| h.word("gpu"));
    let total =
        card.as_deref().and_then(|c| cx.knowledge.gpu(c)).and_then(dualplane_core::knowledge::Gpu::total);
    if let (Some(layers), Some(requested), Some(total)) = (layers.filter(|l| *l >= 1.0), oom.requested, total)
    {
        let per_layer = requested.0 as f64 / layers;
        // A tenth of the card stays for KV cache, compute buffers and the context; the log does not tell their sizes.
        let fit = ((total.0 as f64 * 0.9) / per_layer).floor();
        out.push(
            Action::new(Stage::Fix, format!("Set --n-gpu-layers {fit} (of {layers}); the rest runs on the CPU"))
                .because(format!("{requested} ÷ {layers} layers = {} a layer", Bytes::from_f64(per_layer)))
                .because(format!("0.9 × {total} ({}) ÷ that = {fit}; the tenth left is for KV cache, compute buffers and context", card.unwrap_or_default())),
        );
    } else {
        out.push(Action::new(Stage::Fix, "Lower --n-gpu-layers, --ctx-size or --ubatch-size, in this order of effect for a weights, KV or compute buffer"));
    }
}

fn runtime(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let flag = utilization_flag(cx);
    if let (Some((u, from)), Some(requested), Some(total)) = (utilization(cx), oom.requested, oom.total) {
        let short = requested.saturating_sub(oom.free.unwrap_or_default());
        // The same request again as margin: the next longer prompt asks for more than this one.
        let give = short.saturating_add(requested);
        let lower = floor_hundredth(u - give.share_of(total));
        // The share must hold the weights, and something of a KV pool beside them.
        let weights = cx.facts.last_memory("vllm.weights", "weights").map(|(b, _)| b.share_of(total));
        let least = weights.unwrap_or_default().max(0.05);
        let sum = format!(
            "asked for {requested} − free {} = {short} short; + {requested} margin for the next larger step = {give}",
            oom.free.unwrap_or_default()
        );
        let rest = format!("{u} ({from}) − {give} ÷ total {total} = {:.4}", u - give.share_of(total));
        out.push(if lower > least {
            Action::new(Stage::Fix, format!("Set {flag} {lower} (from {u}): it leaves the {give} that the step lacked outside the KV pool"))
                .because(sum)
                .because(format!("{rest}, rounded down to {lower}"))
        } else {
            Action::new(Stage::Fix, format!("{flag} cannot give the {give} that the step lacked: make the step smaller, or use a larger card or more of them"))
                .because(sum)
                .because(format!("{rest}: less than the weights and a KV pool need"))
        });
    } else if matches!(cx.facts.engine.name.as_deref(), Some("vllm" | "sglang")) {
        out.push(
            Action::new(Stage::Fix, format!("Lower {flag} by what the failed step lacked: that size, or the fraction now in use, is not in the evidence"))
                .because("measure: the peak of nvidia-smi's used memory in the failing step, less its value when idle, divided by the total")
                .run("nvidia-smi --query-gpu=timestamp,memory.used,memory.free,memory.total --format=csv -lms 200"),
        );
    }
    match cx.facts.engine.name.as_deref() {
        Some("vllm") => out.push(batched_tokens(cx)),
        Some("sglang") => {
            let now = cx.facts.hits.iter().rev().find_map(|h| h.number("chunked_prefill"));
            let now = cx.facts.engine.number(&["chunked-prefill-size"]).or(now);
            out.push(halve(
                "Or ",
                "--chunked-prefill-size",
                "the memory of a prefill step's activations",
                now,
                "",
            ));
        }
        Some("tgi") => out.push(prefill_tokens(cx)),
        Some("llama_cpp" | "ollama") => out.push(Action::new(
            Stage::Fix,
            "Lower --ubatch-size or --ctx-size, or --n-gpu-layers by one, until the compute buffer fits",
        )),
        Some("triton") => out.push(Action::new(
            Stage::Fix,
            "Lower max_batch_size or the instance count in config.pbtxt: each instance has its own buffers",
        )),
        _ => {}
    }
    serve_again(cx, out);
}

/// The log is saved first: a restart may erase it.
fn serve_again(cx: &Context<'_>, out: &mut Vec<Action>) {
    let n = names(cx);
    out.push(
        Action::new(
            Stage::StopTheBleeding,
            "First save the logs: the kubelet keeps one dead instance, and a restart or a new pod takes its place",
        )
        .run(format!("kubectl logs -n {} {} -c {} --previous > previous.log", n.ns, n.pod, n.container))
        .run(format!("kubectl logs -n {} {} -c {} > current.log", n.ns, n.pod, n.container)),
    );
    out.push(Action::new(
        Stage::StopTheBleeding,
        "Cap the traffic that triggers it (longest prompts, widest batches) at the gateway or router until the change is out",
    ));
    let restart = "Only if the server does not serve any more: restart it, after the logs are saved";
    out.push(match workload(cx) {
        Workload::Rolling(w) => Action::new(Stage::StopTheBleeding, restart)
            .run(format!("kubectl rollout restart {w} -n {}", n.ns)),
        Workload::Other(kind) => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. kubectl rollout restart knows no {kind}: use what its controller offers"),
        ),
        Workload::Bare => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. The pod has no owner that would make it again: keep its manifest, and apply it anew"),
        ),
        Workload::Unknown => Action::new(
            Stage::StopTheBleeding,
            format!("{restart}. What owns the pod is not in the evidence"),
        )
        .run(format!("kubectl get pod {} -n {} -o jsonpath='{{.metadata.ownerReferences[*].kind}} {{.metadata.ownerReferences[*].name}}'", n.pod, n.ns)),
    });
}

fn batched_tokens(cx: &Context<'_>) -> Action {
    let now = cx.facts.engine.number(&["max-num-batched-tokens"]).map(|n| (n, "the pod's flag"));
    let printed = cx
        .facts
        .hits
        .iter()
        .rev()
        .filter(|h| h.id == "vllm.max_num_batched_tokens")
        .find_map(|h| h.number("tokens"))
        .map(|n| (n, "as the log prints it"));
    let (now, from) = now.or(printed).unzip();
    halve("Or ", "--max-num-batched-tokens", "the activation peak of a step", now, from.unwrap_or_default())
}

/// Half of a number of tokens: what is in proportion to it halves with it. A number below two has no half.
fn halve(or: &str, flag: &str, effect: &str, now: Option<f64>, from: &str) -> Action {
    let verb = if or.is_empty() { ["Set", "Halve"] } else { ["set", "halve"] };
    let [set, halve] = verb;
    match now.filter(|n| *n >= 2.0) {
        Some(n) => {
            let from = if from.is_empty() { String::new() } else { format!(" ({from})") };
            Action::new(Stage::Fix, format!("{or}{set} {flag} {}: {effect} halves", (n / 2.0) as u64))
                .because(format!("{n} now{from}; it grows in proportion to the tokens of a step"))
        }
        None => Action::new(
            Stage::Fix,
            format!("{or}{halve} {flag}: {effect} is in proportion to it (its value is not in the evidence)"),
        ),
    }
}

fn prefill_tokens(cx: &Context<'_>) -> Action {
    let flag = cx.facts.engine.number(&["max-batch-prefill-tokens"]);
    let printed = cx
        .facts
        .hits
        .iter()
        .filter(|h| h.id.starts_with("tgi."))
        .find_map(|h| h.number("prefill_tokens").or_else(|| h.number("tokens")));
    halve("", "--max-batch-prefill-tokens", "the memory of warm-up and prefill batches", flag.or(printed), "")
}

fn fragmentation(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let idle = oom.reserved_unallocated().unwrap_or_default();
    let requested = oom.requested.unwrap_or_default();
    out.push(
        Action::new(
            Stage::Fix,
            "Let the allocator map segments piecewise: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        )
        .because(format!(
            "{idle} reserved but unallocated ≥ {requested} asked for: in one piece it would have been enough"
        ))
        .because("PyTorch 2.9.1 ignored the new name PYTORCH_ALLOC_CONF for this option; set the old name")
        .patch(&container_patch(
            cx,
            json!({ "env": [{ "name": "PYTORCH_CUDA_ALLOC_CONF", "value": "expandable_segments:True" }] }),
        )),
    );
    out.push(Action::new(Stage::StopTheBleeding, "Restart the server: a fresh allocator has no holes; time to the next failure tells how fast they grow"));
    out.push(Action::new(
        Stage::Prevent,
        "Keep request shapes in few sizes (bucketed lengths, fixed batch sizes) where the engine allows it",
    ));
}

fn conflict(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let n = names(cx);
    let hit = cx.verdict.trigger.as_ref().and_then(|t| cx.facts.hits.iter().find(|h| h.place == t.place));
    let free = hit.and_then(|h| h.memory("free")).or(oom.free);
    let total = hit.and_then(|h| h.memory("total")).or(oom.total);
    let desired = hit.and_then(|h| h.memory("desired"));
    out.push(
        Action::new(Stage::StopTheBleeding, "Find who holds the card and end it if it should not be there (a terminating replica, an orphan of a crash, another pod)")
            .run(on_node(&n.node, "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,name --format=csv"))
            .run(format!("kubectl get pod -A --field-selector spec.nodeName={} -o wide", n.node))
            .run(on_node(&n.node, "cat /proc/PID/cgroup   # the path names the pod's UID")),
    );
    if let (Some(free), Some(total), Some(desired)) = (free, total, desired) {
        let held = total.saturating_sub(free);
        let fit = floor_hundredth(free.share_of(total));
        out.push(
            Action::new(Stage::Fix, format!("Free {} on the card for this server: {held} is held by others before it starts", desired.saturating_sub(free)))
                .because(format!("wanted {desired} − free {free} = {} short; total {total} − free {free} = {held} held by others", desired.saturating_sub(free))),
        );
        let weights = cx.facts.last_memory("vllm.weights", "weights").map(|(b, _)| b);
        if held.share_of(total) < 0.25 && weights.is_none_or(|w| w < free) {
            out.push(
                Action::new(
                    Stage::Fix,
                    format!(
                        "Or share the card on purpose: --gpu-memory-utilization {fit} fits what is free now"
                    ),
                )
                .because(format!("{free} ÷ {total} = {:.4}, rounded down", free.share_of(total))),
            );
        }
    } else if let (Some(others), Some(total)) = (oom.others(), oom.total) {
        out.push(
            Action::new(
                Stage::Fix,
                format!(
                    "Give the server a card (or MIG instance) of its own: others hold {others} of {total}"
                ),
            )
            .because(format!(
                "total {total} − free {} − this process {} = {others}",
                oom.free.unwrap_or_default(),
                oom.own().unwrap_or_default()
            )),
        );
    } else {
        out.push(Action::new(
            Stage::Fix,
            "Give the server a card of its own, or start it after the neighbour's memory use has settled",
        ));
    }
    out.push(
        Action::new(Stage::Prevent, "On a rolling update let the old pod end before the new one starts: maxSurge 0, or strategy Recreate, and a pre-start check of free VRAM")
            .patch(&json!({
                "spec": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } } }
            })),
    );
    out.push(Action::new(Stage::Prevent, "Time-slicing (nvidia.com/gpu.shared, replicas) isolates no memory: use MIG or whole GPUs for servers that claim a fraction of the card"));
}

fn verify(cx: &Context<'_>, oom: &VramOom, out: &mut Vec<Action>) {
    let n = names(cx);
    // At load the failed request may be all weights; while serving it is the step that must fit next time.
    let most = if cx.verdict.class == Class::CudaOomLoad { Bytes(GIB) } else { Bytes(u64::MAX) };
    let margin = oom.requested.map_or(Bytes(GIB), |r| r.max(Bytes(GIB / 4)).min(most));
    out.push(
        Action::new(Stage::Verify, format!("After the change: start-up completes, and at the peak of traffic at least {margin} stays free on the card"))
            .run(n.exec("nvidia-smi --query-gpu=memory.used,memory.free,memory.total --format=csv")),
    );
}

fn avoid(cx: &Context<'_>, out: &mut Vec<Action>) {
    out.push(Action::new(
        Stage::Avoid,
        "Do not raise the container's memory limit for this: resources.limits.memory is host RAM, and VRAM ran out",
    ));
    if cx.verdict.class == Class::CudaOomLoad {
        out.push(Action::new(
            Stage::Avoid,
            "Do not lower the KV share to make room for weights: the weights did not fit the whole card",
        ));
    }
    if cx.verdict.class == Class::CudaOomRuntime {
        out.push(Action::new(
            Stage::Avoid,
            "Do not raise the utilisation: it takes the very room that the failing step needs",
        ));
    }
    if cx.verdict.class == Class::GpuCapacityConflict {
        out.push(Action::new(
            Stage::Avoid,
            "Do not quantise or re-shard the model for this: it fits, the card is taken",
        ));
    }
}
