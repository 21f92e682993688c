//! Caches and pools that an engine keeps in RAM, and the shared memory between its processes.

use super::{Cx, Part, When};
use crate::arith::mul;
use crate::launch::Lora;
use crate::model::{FeedForward, Model};
use crate::quantity::Quantity;
use crate::version::EngineKind;
use dualplane_base::Version;
use dualplane_base::units::{Bytes, GIB, MIB};

pub(super) fn parts(cx: &mut Cx<'_>) -> Vec<Part> {
    let mut out = shared(cx);
    match cx.input.line.launch.engine {
        EngineKind::Vllm => out.extend(vllm(cx)),
        EngineKind::Sglang => out.extend(hicache(cx)),
        EngineKind::LlamaCpp => out.push(prompt_cache(cx)),
        EngineKind::Tgi | EngineKind::TensorrtLlm => {}
    }
    let host = &cx.input.line.host;
    if let Some(each) = host.lmcache_bytes {
        // The pool is allocated with the next power of two (LMCache#1147), for each rank (LMCache#949).
        let rounded = each.checked_next_power_of_two().unwrap_or(each);
        let quantity = Quantity::band(each, rounded, rounded) * cx.ranks;
        let formula = format!("{} rounded up to {} × {} ranks", Bytes(each), Bytes(rounded), cx.ranks);
        out.push(Part::new("pinned.lmcache", When::Always, quantity, formula, "LMCache#949, LMCache#1147"));
    }
    out
}

/// Queues of the executor and NCCL's segments.
fn shared(cx: &mut Cx<'_>) -> Vec<Part> {
    let mut out = Vec::new();
    let ranks = cx.ranks;
    if ranks > 1 && cx.vllm() {
        let chunk = cx.input.line.host.queue_chunk_mib.unwrap_or(16).min(1 << 20) * MIB;
        let queue = chunk * 10;
        let replies = 124 * MIB * ranks;
        out.push(
            Part::new(
                "shm.message_queue",
                When::Always,
                Quantity::band(chunk, queue, queue + replies),
                format!(
                    "broadcast: 10 chunks × {}; replies: up to 124 MiB for each of {ranks} ranks",
                    Bytes(chunk)
                ),
                "vLLM distributed/device_communicators/shm_broadcast.py",
            )
            .shared(),
        );
    }
    if ranks > 1 && cx.input.line.launch.engine != EngineKind::LlamaCpp {
        let (low, mid, high) = match ranks {
            2 => (MIB * 100, GIB / 2, GIB),
            3..=4 => (MIB * 200, 2 * GIB, 3 * GIB),
            _ => (MIB * 400, 3 * GIB, 4 * GIB),
        };
        out.push(
            Part::new(
                "shm.nccl",
                When::Always,
                Quantity::band(low, mid, high),
                format!("segments of 9,637,888 B between {ranks} ranks without peer-to-peer access"),
                "segment size measured: nccl#525, production-stack#276; their number is an estimate",
            )
            .shared(),
        );
    }
    if cx.input.line.host.ray {
        match cx.input.line.host.pod.limit {
            Some(Bytes(limit)) => out.push(
                Part::new(
                    "shm.ray_object_store",
                    When::Serving,
                    Quantity::band(0, limit / 10 * 3, limit / 10 * 3),
                    format!("30 % of the limit of {}", Bytes(limit)),
                    "Ray's default object store",
                )
                .shared(),
            ),
            None => cx.unknown(
                "Ray's object store: 30 % of the pod's memory, in /dev/shm",
                "set a memory limit, or --object-store-memory in Ray",
            ),
        }
    }
    out
}

fn vllm(cx: &mut Cx<'_>) -> Vec<Part> {
    let mut out = Vec::new();
    let launch = &cx.input.line.launch;
    let ranks = cx.ranks;
    let second_runner = launch.v2_runner.unwrap_or(launch.version >= Version(0, 30, 0));
    if let (true, Some(plan)) = (second_runner, cx.input.plan) {
        let (seqs, len) = (plan.resolved.max_num_seqs, plan.gpu.kv_cache.max_model_len);
        out.push(Part::new(
            "pinned.token_ids",
            When::Always,
            Quantity::exact(mul([4, seqs, len])) * ranks,
            format!("4 B × {seqs} sequences × {len} tokens × {ranks} ranks"),
            "vLLM v1/worker/gpu/states.py",
        ));
    }
    if launch.cpu_offload_bytes > 0 {
        let all = launch.cpu_offload_bytes.saturating_mul(ranks);
        out.push(Part::new(
            "pinned.cpu_offload",
            When::Always,
            Quantity::band(all, all.saturating_mul(3) / 2, all.saturating_mul(2)),
            format!(
                "{} × {ranks} ranks; each pinned tensor is rounded up to a power of two",
                Bytes(launch.cpu_offload_bytes)
            ),
            "vLLM model_executor/offloader/uva.py; vllm-backport#67",
        ));
    }
    if launch.kv_offload_bytes > 0 {
        out.push(
            Part::new(
                "shm.kv_offload",
                When::Always,
                Quantity::exact(launch.kv_offload_bytes),
                format!(
                    "--kv-offloading-size {}, over all ranks, pre-faulted",
                    Bytes(launch.kv_offload_bytes)
                ),
                "vLLM v1/kv_offload/cpu/shared_offload_region.py",
            )
            .shared(),
        );
    }
    // The first engine pins a swap pool; the second ignores the option and then drops it.
    if launch.version < Version(0, 8, 0) {
        let each = launch.swap_space_bytes.unwrap_or(4 * GIB);
        out.push(Part::new(
            "pinned.swap_space",
            When::Always,
            Quantity::exact(each) * ranks,
            format!("{} × {ranks} ranks", Bytes(each)),
            "vLLM 0.8 worker/cache_engine.py",
        ));
    }
    out.extend(multimodal(cx));
    if let (Some(lora), Some(model)) = (launch.lora, cx.input.model) {
        out.push(adapters(lora, model, ranks));
    }
    if cx.input.line.host.sleep_mode
        && let Some(gpu) = cx.gpu()
    {
        let all = gpu.weights_bytes.expected.saturating_mul(ranks);
        out.push(Part::new(
            "pinned.sleep",
            When::Serving,
            Quantity::band(0, 0, all),
            format!("in sleep mode level 1: weights {} × {ranks} ranks", Bytes(gpu.weights_bytes.expected)),
            "vLLM device_allocator/cumem.py",
        ));
    }
    out
}

/// Processed images are kept by each API server and by each engine.
fn multimodal(cx: &Cx<'_>) -> Option<Part> {
    let launch = &cx.input.line.launch;
    cx.input.model?.encoder.as_ref()?;
    if launch.language_model_only {
        return None;
    }
    let each = launch.mm_processor_cache_bytes.unwrap_or(4 * GIB);
    let copies = launch.api_servers.max(1).saturating_add(launch.dp.max(1));
    let shm = cx.input.line.host.shm_processor_cache;
    let n = if shm { 1 } else { copies };
    let cap = each.saturating_mul(n);
    let formula = if shm {
        format!("--mm-processor-cache-gb {} in one shared ring", Bytes(each))
    } else {
        format!(
            "up to {} × ({} API servers + {} engines); grows with the images received",
            Bytes(each),
            launch.api_servers.max(1),
            launch.dp.max(1)
        )
    };
    let part = Part::new(
        "cache.multimodal",
        When::Serving,
        Quantity::band(0, cap, cap),
        formula,
        "vLLM config/multimodal.py mm_processor_cache_gb",
    );
    (cap > 0).then(|| if shm { part.shared() } else { part })
}

/// Adapters kept in RAM: A and B of each linear layer in 16 bits.
fn adapters(lora: Lora, model: &Model, ranks: u64) -> Part {
    let h = model.hidden_size;
    let attention = 4 * h + 2 * h + 2 * mul([model.kv_heads, model.head_size()]);
    let widths: u64 = model
        .layers
        .iter()
        .map(|l| match l.feed_forward {
            FeedForward::Dense { intermediate, .. } => {
                attention.saturating_add(3 * h.saturating_add(intermediate))
            }
            _ => attention,
        })
        .fold(0, u64::saturating_add);
    let each = mul([2, lora.max_rank, widths]);
    Part::new(
        "cache.lora_adapters",
        When::Serving,
        Quantity::band(0, mul([each, lora.max_cpu_loras]), mul([each, lora.max_cpu_loras, ranks])),
        format!(
            "{} adapters × {} (rank {}, all linear layers)",
            lora.max_cpu_loras,
            Bytes(each),
            lora.max_rank
        ),
        "vLLM lora/; in + out of each linear layer × rank × 2 B",
    )
}

fn hicache(cx: &mut Cx<'_>) -> Option<Part> {
    let host = &cx.input.line.host;
    let (ratio, ranks) = (host.hicache_ratio, cx.ranks);
    let source = "SGLang mem_cache/memory_pool_host.py";
    if let Some(each) = host.hicache_bytes {
        ratio?;
        let formula = format!("--hicache-size {} × {ranks} ranks", Bytes(each));
        return Some(Part::new(
            "pinned.hicache",
            When::Always,
            Quantity::exact(each) * ranks,
            formula,
            source,
        ));
    }
    let ratio = ratio?;
    let Some(gpu) = cx.gpu() else {
        cx.unknown(
            "the pinned pool of the hierarchical cache, which is --hicache-ratio times the GPU's KV pool",
            "set --hicache-size, or give the pool size that the engine printed",
        );
        return None;
    };
    let pool = gpu.kv_cache.available_bytes.map(|b| (b as f64 * ratio) as u64) * ranks;
    let formula = format!("{ratio} × KV pool × {ranks} ranks");
    Some(Part::new("pinned.hicache", When::Always, pool, formula, source))
}

fn prompt_cache(cx: &Cx<'_>) -> Part {
    // 8,192 MiB where it is not given (llama.cpp common/common.h `cache_ram_mib`).
    let cap = cx.input.line.host.prompt_cache_bytes.unwrap_or(8192 * MIB);
    Part::new(
        "cache.prompts",
        When::Serving,
        Quantity::band(0, cap, cap),
        format!("--cache-ram {}; grows with prompts", Bytes(cap)),
        "llama.cpp common/common.h; home-ops#13936",
    )
}
