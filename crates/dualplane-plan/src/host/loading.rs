//! What loading the weights takes besides what stays.

use super::{Cx, HostAsk, Part, When};
use crate::arith::mul;
use crate::model::{FeedForward, Model};
use crate::quantity::{Plane, Quantity};
use crate::version::EngineKind;
use dualplane_base::units::{Bytes, GIB};

/// Weight files are cut at 4 to 10 GB by the usual tools; taken where the files were not seen.
const SHARD: (u64, u64, u64) = (4_000_000_000, 5_000_000_000, 10_000_000_000);

/// llama.cpp's tensors that are on no card.
const MODEL_IN_RAM: &str = "llama_cpp.model_buffer";

const SOURCE: &str = "vLLM model_executor/model_loader/weight_utils.py";

pub(super) fn parts(cx: &mut Cx<'_>) -> Vec<Part> {
    let line = cx.input.line;
    let mut out = Vec::new();
    if let Some((bytes, how)) = checkpoint(cx) {
        out.push(Part::new(
            "page_cache.checkpoint",
            When::Reclaimable,
            Quantity::band(0, bytes, bytes),
            format!("{how}; mapped or read once, reclaimed under memory pressure"),
            "kernel: clean file pages are reclaimed before the OOM killer runs; vllm#3035",
        ));
    }
    if line.launch.engine == EngineKind::LlamaCpp {
        if cx.input.plan.is_some() && line.host.mapped {
            // The mapped file is page cache already; its part for layers in RAM is no second one.
            out.extend(llama_cpp(cx).into_iter().filter(|p| p.when != When::Reclaimable));
            return out;
        }
        out.extend(llama_cpp(cx));
        return out;
    }
    let format = line.launch.load_format.clone();
    let strategy = line.host.load_strategy.clone().unwrap_or_default();
    let pickled = matches!(format.as_str(), "pt" | "npcache") || format == "auto" && cx.input.files.bin;
    match (format.as_str(), strategy.as_str()) {
        _ if pickled => out.push(shards(cx, "loader.pickled_shard", 1, "a whole .bin file for each rank")),
        (_, "eager") => {
            out.push(shards(cx, "loader.eager_shard", 2, "file and tensors of a shard for each rank"))
        }
        ("auto" | "safetensors" | "hf" | "mistral", _) => out.push(tensor(cx)),
        ("dummy", _) => {}
        ("sharded_state", _) => out.push(tensor(cx)),
        ("fastsafetensors", _) => out.push(Part::new(
            "loader.bounce_buffers",
            When::Load,
            Quantity::band(0, GIB / 2, 2 * GIB) * cx.ranks,
            format!("bounce buffers of {} ranks", cx.ranks),
            "estimate; fastsafetensors without GPU-direct storage",
        )),
        (f, _) if f.starts_with("runai") => out.push(streamer(cx)),
        (f, _) => {
            let what = format!("the buffers of --load-format {f}");
            cx.unknown(&what, "watch the cgroup's memory.peak during one load");
        }
    }
    out
}

/// Bytes of the checkpoint, and how they are known.
fn checkpoint(cx: &Cx<'_>) -> Option<(u64, String)> {
    if let Some(b) = cx.input.files.bytes {
        return Some((b, format!("the weight files, {}", Bytes(b))));
    }
    if let Some(b) = cx.input.model.and_then(|m| m.checkpoint_bytes) {
        return Some((b, format!("total_size of the safetensors index, {}", Bytes(b))));
    }
    let launch = &cx.input.line.launch;
    let weights = cx.gpu()?.weights_bytes.expected;
    let in_ram = cx.input.plan.iter().flat_map(|p| &p.terms).filter(|t| t.name == MODEL_IN_RAM);
    let bytes =
        in_ram.fold(mul([weights, launch.tp, launch.pp]), |sum, t| sum.saturating_add(t.quantity.expected));
    Some((
        bytes,
        format!("about weights per GPU × {} ranks = {}", launch.tp.saturating_mul(launch.pp), Bytes(bytes)),
    ))
}

/// Safetensors are mapped: only a tensor that is cast, cut or repacked is copied.
fn tensor(cx: &Cx<'_>) -> Part {
    let (each, how) = match cx.input.model {
        Some(m) => largest_tensor(m, cx.input.line.launch.tp.max(1)),
        None => (Quantity::band(0, GIB, 4 * GIB), "one tensor of unknown size".to_owned()),
    };
    let formula = format!("{how} × {} ranks", cx.ranks);
    Part::new("loader.tensor_copy", When::Load, each * cx.ranks, formula, SOURCE)
}

/// A rank copies its cut of a tensor; the whole where it is cast or repacked first.
fn largest_tensor(model: &Model, tp: u64) -> (Quantity, String) {
    let embedding = mul([model.vocab_size, model.hidden_size, 2]);
    let experts = model
        .layers
        .iter()
        .filter_map(|l| match l.feed_forward {
            // Checkpoints with fused experts hold all experts of a layer in one tensor, gate and up together.
            FeedForward::Moe(m) => Some(mul([m.experts, 2, m.intermediate, model.hidden_size, 2])),
            _ => None,
        })
        .max()
        .unwrap_or(0);
    let formula = format!(
        "one rank's shard of a tensor, at most the whole tensor: embedding {} × {} × 2 B = {}{}",
        model.vocab_size,
        model.hidden_size,
        Bytes(embedding),
        if experts > embedding {
            format!(", fused experts of a layer up to {}", Bytes(experts))
        } else {
            String::new()
        }
    );
    (Quantity::band(0, embedding / tp, embedding.max(experts)), formula)
}

fn shards(cx: &Cx<'_>, name: &str, times: u64, what: &str) -> Part {
    let (each, how) = match cx.input.files.largest_file {
        Some(b) => (Quantity::exact(b), format!("the largest file, {}", Bytes(b))),
        None => (
            Quantity::band(SHARD.0, SHARD.1, SHARD.2),
            format!("assumed files of {} ({} to {})", Bytes(SHARD.1), Bytes(SHARD.0), Bytes(SHARD.2)),
        ),
    };
    let formula = format!("{what}: {times} × {how} × {} ranks", cx.ranks);
    Part::new(name, When::Load, each * times.saturating_mul(cx.ranks), formula, SOURCE)
}

fn streamer(cx: &mut Cx<'_>) -> Part {
    let whole = checkpoint(cx).map_or(40_000_000_000, |(b, _)| b);
    let (quantity, formula) = match cx.input.line.host.streamer_bytes {
        Some(limit) => (
            Quantity::exact(limit) * cx.ranks,
            format!("RUNAI_STREAMER_MEMORY_LIMIT {} × {} ranks", Bytes(limit), cx.ranks),
        ),
        None => (
            Quantity::band(0, whole, whole.saturating_mul(cx.ranks)),
            "without RUNAI_STREAMER_MEMORY_LIMIT, up to the size of the checkpoint; with Ray, for each \
            rank"
                .to_owned(),
        ),
    };
    Part::new("loader.streamer_buffer", When::Load, quantity, formula, "Run:ai model streamer; vllm#44430")
}

/// llama.cpp maps its file; what is not offloaded is used from there.
fn llama_cpp(cx: &mut Cx<'_>) -> Vec<Part> {
    let host = &cx.input.line.host;
    let in_ram = |host: &HostAsk| !host.mapped || host.locked;
    if let Some(plan) = cx.input.plan {
        // The GPU plane knows which tensors are on no card.
        let found = plan.terms.iter().filter(|t| t.plane == Plane::Host);
        return found
            .map(|t| {
                let mapped = t.name == MODEL_IN_RAM && !in_ram(host);
                let when = if mapped { When::Reclaimable } else { When::Always };
                Part::new(&t.name, when, t.quantity, t.formula.clone(), &t.source)
            })
            .collect();
    }
    if host.mapped && !host.locked {
        return Vec::new();
    }
    match cx.input.files.bytes {
        Some(b) => vec![Part::new(
            "loader.model_in_ram",
            When::Always,
            Quantity::band(0, b, b),
            format!("{} of --mlock or --no-mmap; layers on the GPU are freed after loading", Bytes(b)),
            "llama.cpp src/llama-model-loader.cpp",
        )],
        None => {
            cx.unknown(
                "the size of the GGUF file, which --mlock or --no-mmap keeps in RAM",
                "give the path of the file",
            );
            Vec::new()
        }
    }
}
