//! TensorRT-LLM: the pool is a share of what is *left* after weights and a profiled step, not of the card.
//!
//! Source: TensorRT-LLM tensorrt_llm/_torch/pyexecutor/_util.py `KvCacheCreator._cal_max_memory`, resource_manager.py
//! (PyTorch backend); the compiled backend divides the same way after the engine is loaded.

mod pool;
#[cfg(test)]
mod tests;

use self::pool::{Rows, lines, rows};
use super::Shapes;
use crate::arith::mul;
use crate::gpu::Gpu;
use crate::launch::{Launch, MaxModelLen};
use crate::model::{FeedForward, Model};
use crate::outcome::{GpuPlan, KvGroup, KvPlan, Plan, PlanError, Refusal, Resolved, Verdict};
use crate::quantity::{Plane, Quantity, Term, Unknown};
use dualplane_base::units::MIB;

/// Share of what is left, where none is given.
const SHARE: f64 = 0.9;
/// `max_num_tokens` and `max_batch_size`, where none are given.
const STEP_TOKENS: u64 = 8192;
const BATCH: u64 = 2048;
/// `tokens_per_block`.
const BLOCK: u64 = 32;

/// The GPU plane.
pub(crate) fn plan(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Plan, PlanError> {
    for (flag, n) in [("--tp_size", launch.tp), ("--pp_size", launch.pp)] {
        if n == 0 || n > 4096 {
            return Err(PlanError::contradiction(flag, format!("{n} ranks")));
        }
    }
    let share = launch.gpu_memory_utilization.unwrap_or(SHARE);
    if !(share > 0.0 && share <= 1.0) {
        return Err(PlanError::contradiction(
            "--kv_cache_free_gpu_memory_fraction",
            format!("{share} must be greater than 0 and at most 1"),
        ));
    }
    let block = launch.block_size.unwrap_or(BLOCK);
    if !block.is_power_of_two() {
        return Err(PlanError::contradiction("tokens_per_block", format!("{block} is no power of two")));
    }
    let shapes = Shapes::new(model, launch, gpu, launch.tp, launch.tp)?;
    let kv = rows(model, launch, &shapes)?;
    let (stage, of_stage) = shapes.fullest();
    let weights = Quantity::within(of_stage.total(), shapes.band);
    let step = launch.max_num_batched_tokens.unwrap_or(STEP_TOKENS);
    let activation = activation(model, launch, step);
    let outside = outside(launch);
    let taken = weights + activation.quantity + outside.quantity;
    let left = Quantity::exact(gpu.total_bytes).minus(taken);
    let pool =
        launch.available_kv_bytes.map_or_else(|| left.map(|b| (b as f64 * share) as u64), Quantity::exact);
    let widest = kv.per_token.iter().copied().max().unwrap_or(0).max(1);
    // A printed pool is whole blocks, rounded to two decimals.
    let given = launch.available_kv_bytes.is_some();
    let tokens = pool.map(|b| {
        let blocks = b as f64 / (widest as f64 * block as f64);
        let blocks = if given { blocks.round() } else { blocks.floor() };
        (blocks as u64).saturating_mul(block)
    });
    let len = length(model, launch);
    let needed = len.div_ceil(block).saturating_mul(block).saturating_mul(widest);
    let (verdict, refusal) = verdict(tokens, block);
    let mut terms = shapes.terms(&of_stage);
    terms.extend([activation.clone(), outside.clone()]);
    let requested = left.expected as f64 * share;
    let cut = Quantity::band(left.low, left.expected, left.high);
    terms.push(Term {
        name: "kv.left_free".into(),
        plane: Plane::Gpu,
        quantity: cut.map(|b| (b as f64 * (1.0 - share)) as u64),
        formula: format!("what is left x (1 - {share})"),
        source: "TensorRT-LLM _torch/pyexecutor/_util.py".into(),
    });
    Ok(Plan {
        resolved: Resolved {
            architecture: model.architecture.clone(),
            dtype: shapes.dtype.as_str().into(),
            quantization: shapes.quantization.map(str::to_owned),
            kv_cache_dtype: kv.dtype.clone(),
            attention_backend: "TRTLLM".into(),
            max_num_seqs: launch.max_num_seqs.unwrap_or(BATCH),
            max_num_batched_tokens: step,
            max_in_flight_tokens: step,
            prefix_caching: true,
        },
        gpu: GpuPlan {
            total_bytes: gpu.total_bytes,
            requested_bytes: taken.expected.saturating_add(requested as u64).min(gpu.total_bytes),
            weights_bytes: weights,
            weights_by_class: of_stage.by_class.clone(),
            activation_bytes: activation.quantity,
            cuda_graph_bytes: Quantity::default(),
            non_torch_bytes: outside.quantity,
            kv_cache: kv_plan(&kv, pool, tokens, block, len, needed),
            tightest_stage: stage as u64,
        },
        host: None,
        verdict,
        printed: refusal.is_none().then(|| lines(tokens.expected, widest, block)),
        refusal,
        estimated: false,
        terms,
        unknown: unknown(model, launch, &shapes, given, tokens, len),
    })
}

/// A pool without a block cannot be built; one that is shorter than `max_seq_len` starts and shortens requests.
fn verdict(tokens: Quantity, block: u64) -> (Verdict, Option<Refusal>) {
    let verdict = match (tokens.low < block, tokens.high < block) {
        (false, _) => Verdict::Fits,
        (true, true) => Verdict::Refused,
        (true, false) => Verdict::Uncertain,
    };
    let refusal = (tokens.expected < block).then(|| Refusal {
        // Loading or the profiled step fails in the allocator before a pool is cut.
        message: "torch.OutOfMemoryError: CUDA out of memory.".into(),
        estimated_max_len: None,
    });
    (verdict, refusal)
}

fn kv_plan(kv: &Rows, pool: Quantity, tokens: Quantity, block: u64, len: u64, needed: u64) -> KvPlan {
    let widest = kv.per_token.iter().copied().max().unwrap_or(0);
    KvPlan {
        available_bytes: pool,
        blocks: tokens.map(|t| t / block),
        tokens,
        // Not printed by the engine: the pool over the length.
        max_concurrency_hundredths: tokens.map(|t| (t as f64 / len.max(1) as f64 * 100.0) as u64),
        bytes_per_block: widest.saturating_mul(block),
        block_size: block,
        needed_bytes: needed,
        max_model_len: len,
        padding_layers: 0,
        groups: vec![KvGroup {
            layers: kv.layers,
            kind: if kv.latent { "mla" } else { "full" }.into(),
            block_size: block,
            page_bytes: widest.saturating_mul(block) / kv.layers.max(1),
            blocks_per_request: len.div_ceil(block),
        }],
    }
}

fn length(model: &Model, launch: &Launch) -> u64 {
    match launch.max_model_len {
        MaxModelLen::Tokens(n) if n > 0 => n,
        _ => model.max_model_len,
    }
}

/// The peak of a profiled step beyond the weights: two bytes for each element that a layer holds at once.
fn activation(model: &Model, launch: &Launch, step: u64) -> Term {
    let width = model
        .layers
        .iter()
        .map(|l| match l.feed_forward {
            FeedForward::Dense { intermediate, .. } => mul([3, intermediate / launch.tp]),
            FeedForward::Moe(m) => {
                mul([m.top_k, mul([3, m.intermediate / launch.tp]).saturating_add(model.hidden_size)])
            }
            FeedForward::None => 0,
        })
        .max()
        .unwrap_or(0)
        .saturating_add(mul([4, model.hidden_size]));
    let bytes = step.saturating_mul(width).saturating_mul(2);
    Term {
        name: "activation.forward".into(),
        plane: Plane::Gpu,
        // Not measured for this engine: workspaces of its kernels come on top.
        quantity: Quantity::band(bytes / 2, bytes, bytes.saturating_mul(3).saturating_add(1024 * MIB)),
        formula: format!(
            "{step} tokens x {width} elements x 2 B; up to three times that and 1 GiB of workspaces"
        ),
        source: "estimate; TensorRT-LLM profiles a step of max_num_tokens".into(),
    }
}

/// Context, communicators and runtime outside of torch.
fn outside(launch: &Launch) -> Term {
    let (low, mid, high) = match launch.tp.saturating_mul(launch.pp) {
        1 => (500, 1200, 2500),
        2..=4 => (800, 1800, 3500),
        _ => (1500, 3000, 6000),
    };
    Term {
        name: "non_torch".into(),
        plane: Plane::Gpu,
        quantity: Quantity::band(low * MIB, mid * MIB, high * MIB),
        formula: format!("{mid} MiB on {} ranks", launch.tp.saturating_mul(launch.pp)),
        source: "estimate from public start-up logs; not measured here".into(),
    }
}

fn unknown(
    model: &Model,
    launch: &Launch,
    shapes: &Shapes,
    given: bool,
    tokens: Quantity,
    len: u64,
) -> Vec<Unknown> {
    let mut out = Vec::new();
    let mut add = |what: String, settle: &str| out.push(Unknown { what, settle: settle.into() });
    if !given {
        add(
            "what a profiled step of TensorRT-LLM takes, and its runtime: wide estimates".into(),
            "the start-up line `Peak memory during memory usage profiling`",
        );
    }
    add(
        "settings in --config (--extra_llm_api_options), which overrule the command line".into(),
        "give its values as flags",
    );
    if launch.speculative.is_some() {
        add("the drafter's weights and cache".into(), "the start-up line `Allocated ... for max tokens`");
    }
    if tokens.low < len {
        add(
            format!("whether a request of {len} tokens is served: the pool may hold fewer"),
            "lower --max_seq_len to what the pool holds",
        );
    }
    out.extend(model.unread());
    out.extend(shapes.unknown());
    out
}
