//! What the engine subtracts besides weights and cannot be computed exactly: activations, CUDA graphs, the rest.
//!
//! Constants are fits and estimates over public start-up logs of vLLM, with the spread that was seen; each term says so.

use super::Settled;
use crate::plan::arith::{floor_div, mul};
use crate::plan::launch::Launch;
use crate::plan::model::{Attention, FeedForward, Model};
use crate::plan::quantity::{Plane, Quantity, Term};
use crate::plan::version::Version;
use crate::units::{GIB, MIB};

/// Whether the second model runner serves this version by default (vLLM config/vllm.py `use_v2_model_runner`).
pub(crate) fn second_runner(launch: &Launch) -> bool {
    launch.v2_runner.unwrap_or(launch.version >= Version(0, 30, 0))
}

fn term(name: &str, quantity: Quantity, formula: String, source: &str) -> Term {
    Term { name: name.into(), plane: Plane::Gpu, quantity, formula, source: source.into() }
}

/// Bytes per row and vocabulary entry of the sampler's warm-up: least, expected, most, in tenths.
fn sampler_tenths(launch: &Launch) -> (u64, u64, u64) {
    if launch.version < Version(0, 17, 0) {
        (376, 384, 412)
    } else if !second_runner(launch) {
        (140, 200, 250)
    } else if launch.version < Version(0, 33, 0) {
        (20, 40, 60)
    } else {
        (100, 120, 140)
    }
}

/// The peak of activations while profiling on a stage: the larger of sampler and forward pass.
pub(crate) fn activation(model: &Model, launch: &Launch, s: &Settled, last: bool) -> Term {
    let rows = s.max_num_seqs.saturating_mul(1 + s.ahead).min(s.max_num_batched_tokens);
    let (low, mid, high) = sampler_tenths(launch);
    let of = |tenths: u64| mul([rows, model.vocab_size, tenths]) / 10;
    let sampler = if last { Quantity::band(of(low), of(mid), of(high)) } else { Quantity::default() };
    let forward = forward(model, launch, s);
    let source = "fitted on public start-up logs; vLLM v1/worker/gpu_model_runner.py profile_run";
    if sampler.expected >= forward.expected {
        let formula = format!(
            "{rows} rows x {} vocabulary x {:.1} B (sampler; the forward pass needs less)",
            model.vocab_size,
            mid as f64 / 10.0
        );
        term("activation.sampler", sampler.max(forward), formula, source)
    } else {
        let formula = format!("forward pass of {} tokens (the sampler needs less)", s.max_num_batched_tokens);
        term("activation.forward", forward.max(sampler), formula, source)
    }
}

/// Two bytes for each element that a layer holds at once.
fn forward(model: &Model, launch: &Launch, s: &Settled) -> Quantity {
    let tokens = s.max_num_batched_tokens;
    let hidden = model.hidden_size;
    let peak = model
        .layers
        .iter()
        .map(|l| match l.feed_forward {
            FeedForward::Dense { intermediate, .. } => (mul([3, floor_div(intermediate, launch.tp)]), 0),
            FeedForward::Moe(m) => {
                (0, mul([m.top_k, mul([3, floor_div(m.intermediate, launch.tp)]).saturating_add(hidden)]))
            }
            FeedForward::None => (0, 0),
        })
        .map(|(dense, sparse)| (dense.saturating_add(sparse), sparse > 0))
        .max();
    let (width, sparse) = peak.unwrap_or((0, false));
    let bytes = mul([2, tokens, width.saturating_add(4 * hidden)]);
    // Kernels of experts cut their work differently: plus or minus one half.
    Quantity::within(bytes, if sparse { 0.5 } else { 0.25 })
}

/// Rough size of the model, which decides the size of its graphs.
fn parameters(weights: u64, launch: &Launch) -> u64 {
    mul([weights / 2, launch.tp, launch.pp])
}

/// CUDA graphs as the engine estimates and subtracts them.
pub(crate) fn cuda_graphs(model: &Model, launch: &Launch, weights: u64) -> Term {
    let name = "cuda_graph";
    let off = launch.enforce_eager
        || launch.cuda_graphs.mode.as_deref().is_some_and(|m| m.eq_ignore_ascii_case("none"));
    if off {
        return term(
            name,
            Quantity::default(),
            "no graphs are captured".into(),
            "--enforce-eager, cudagraph_mode",
        );
    }
    if launch.version < Version(0, 20, 0) {
        let formula = "captured after the pool is sized, not subtracted".into();
        return term(name, Quantity::default(), formula, "vLLM before 0.20.0");
    }
    let v2 = second_runner(launch);
    let hybrid = model
        .layers
        .iter()
        .any(|l| matches!(l.attention, Attention::Mamba2(_) | Attention::GatedDelta(_) | Attention::Kda(_)));
    let moe = model.layers.iter().any(|l| matches!(l.feed_forward, FeedForward::Moe(_)));
    let params = parameters(weights, launch);
    let (mid, half) = match (hybrid, moe, launch.tp * launch.pp > 1, params > 20_000_000_000) {
        (true, ..) => (2.4, 1.0),
        (_, true, true, _) => (if v2 { 3.0 } else { 2.5 }, 1.5),
        (_, true, ..) => (if v2 { 1.0 } else { 0.8 }, 0.5),
        (_, _, _, true) => (if v2 { 1.5 } else { 1.0 }, 0.6),
        _ => (if v2 { 1.0 } else { 0.55 }, 0.4),
    };
    let (mid, half): (f64, f64) =
        if launch.speculative.is_some() { (mid + 0.3, half + 0.3) } else { (mid, half) };
    let bytes = |gib: f64| (gib.max(0.0) * GIB as f64) as u64;
    let quantity = Quantity::band(bytes(mid - half), bytes(mid), bytes(mid + half));
    let formula = format!("estimate for this kind of model: {mid:.2} GiB, plus or minus {half:.2}");
    term(name, quantity, formula, "fitted on public start-up logs; vLLM profile_cudagraph_memory")
}

/// Memory outside of torch's allocator and the runner's own buffers.
pub(crate) fn non_torch(model: &Model, launch: &Launch, s: &Settled, last: bool, total_bytes: u64) -> Term {
    let ranks = launch.tp * launch.pp;
    let (low, mid, high) = match (launch.expert_parallel && ranks > 1, ranks) {
        (true, _) => (1000, 3000, 5800),
        // The first engine counted the context and whatever else was on the card.
        // It grew with the card: 0.05 to 0.8 GiB on small ones, 1.8 on 80 GB.
        (_, 1) if launch.is_first_engine() => (40, 200, (total_bytes / 40 / MIB).max(500)),
        _ if launch.is_first_engine() => (150, 900, 7500),
        (_, 1) => (40, 133, 240),
        (_, 2..=4) => (150, 400, 800),
        _ => (400, 950, 1600),
    };
    let mut quantity = Quantity::band(low * MIB, mid * MIB, high * MIB);
    let mut formula = format!("{mid} MiB on {ranks} ranks");
    if last && second_runner(launch) {
        // 32-bit counts and a bit mask for each sequence and entry (vLLM v1/worker/gpu/sample/penalties.py).
        let state = mul([s.max_num_seqs, model.vocab_size, 33]) / 8;
        quantity = quantity + Quantity::exact(state);
        formula = format!("{formula} + sampler state {} x {} x 4.125 B", s.max_num_seqs, model.vocab_size);
    }
    term("non_torch", quantity, formula, "fitted on public start-up logs; vLLM utils/mem_utils.py")
}
