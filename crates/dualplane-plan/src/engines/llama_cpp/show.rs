//! What llama.cpp would print, and what stays in RAM.

use super::facts::Facts;
use super::kv::Types;
use super::{Card, HOST, Layout};
use crate::arith::mul;
use crate::gpu::Gpu;
use crate::launch::CommandLine;
use crate::outcome::{Refusal, Verdict};
use crate::quantity::{Plane, Quantity, Term};
use dualplane_base::units::MIB;

fn mib(bytes: u64) -> String {
    format!("{:8.2} MiB", bytes as f64 / MIB as f64)
}

/// KV bytes that stay in RAM.
pub(super) fn cache_in_ram(facts: &Facts, types: Types, line: &CommandLine, l: &Layout) -> u64 {
    let all = facts.layers.iter().enumerate();
    all.filter(|(il, _)| line.llama_cpp.kv_in_ram || l.place.card(*il as u64).is_none())
        .map(|(_, layer)| types.bytes(layer, &l.cells).saturating_add(super::kv::state(layer, &l.cells)))
        .fold(0, u64::saturating_add)
}

/// The buffers as the log lists them.
pub(super) fn printed(facts: &Facts, types: Types, line: &CommandLine, l: &Layout) -> String {
    let mut out = vec![format!(
        "load_tensors: offloaded {}/{} layers to GPU",
        l.place.offloaded(),
        facts.layers.len() + 1
    )];
    let mut each = |function: &str, what: &str, of: &dyn Fn(&Card) -> u64, ram: Option<(&str, u64)>| {
        for (i, card) in l.cards.iter().enumerate() {
            let name = format!("CUDA{i}");
            if of(card) > 0 {
                out.push(format!("{function}: {name:>12} {what} buffer size = {}", mib(of(card))));
            }
        }
        if let Some((name, bytes)) = ram.filter(|(_, b)| *b > 0) {
            out.push(format!("{function}: {name:>12} {what} buffer size = {}", mib(bytes)));
        }
    };
    let mapped = if line.host.mapped { "CPU_Mapped" } else { "CPU" };
    each("load_tensors", "model", &|c| c.weights.expected, Some((mapped, l.weights.ram)));
    let ram = cache_in_ram(facts, types, line, l);
    each("llama_kv_cache", "KV", &|c| c.cache, Some(("CPU", ram)));
    each("llama_memory_recurrent", "RS", &|c| c.state, None);
    each("llama_context", "compute", &|c| c.compute.quantity.expected, None);
    out.join("\n")
}

/// The allocation that fails first: model, cache, compute buffer, in this order.
pub(super) fn refusal(
    gpu: &Gpu,
    card: &Card,
    at: usize,
    total: Quantity,
    verdict: Verdict,
) -> Option<Refusal> {
    if verdict == Verdict::Fits || total.expected <= gpu.total_bytes {
        return None;
    }
    let mut used = super::compute::context().expected;
    let steps = [card.weights.expected, card.cache, card.state, card.compute.quantity.expected];
    let failed = steps.into_iter().find(|bytes| {
        used = used.saturating_add(*bytes);
        used > gpu.total_bytes
    })?;
    Some(Refusal {
        message: format!(
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating {:.2} MiB on device {at}: cudaMalloc failed: out of memory",
            failed as f64 / MIB as f64
        ),
        estimated_max_len: None,
    })
}

/// What stays in RAM; the host plane charges it.
pub(super) fn host_terms(facts: &Facts, types: Types, line: &CommandLine, l: &Layout) -> Vec<Term> {
    let term = |name: &str, bytes: u64, formula: String, source: &str| Term {
        name: format!("{HOST}{name}"),
        plane: Plane::Host,
        quantity: if name == "compute_buffer" {
            // Positions of several dimensions and masks of windows add up to a third.
            Quantity::band(bytes, bytes, bytes / 3 * 4)
        } else {
            Quantity::exact(bytes)
        },
        formula,
        source: source.into(),
    };
    let c = &l.cells;
    let tokens = c.full;
    let mut out = vec![
        term(
            "model_buffer",
            l.weights.ram,
            format!(
                "tensors that are not on a GPU: the input embedding and {} layers",
                (facts.layers.len() as u64 + 1).saturating_sub(l.place.offloaded())
            ),
            super::LOAD,
        ),
        term(
            "kv_buffer",
            cache_in_ram(facts, types, line, l),
            "KV cache of layers that are not on a GPU".into(),
            super::CACHE,
        ),
        term(
            "compute_buffer",
            mul([c.ubatch, 4, facts.hidden.saturating_add(tokens)]),
            format!("{} tokens × 4 B × (hidden {} + {tokens} cells), pinned", c.ubatch, facts.hidden),
            "fitted to printed `CUDA_Host compute buffer size`: logdetective#106, LLamaSharp#1099",
        ),
        term(
            "output_buffer",
            mul([c.slots, 4, facts.vocab]),
            format!("{} slots × 4 B × vocabulary {}", c.slots, facts.vocab),
            "llama.cpp src/llama-context.cpp output_reserve",
        ),
    ];
    out.retain(|t| t.quantity.expected > 0);
    out
}
