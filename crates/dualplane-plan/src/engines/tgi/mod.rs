//! The GPU plane of TGI: one prefill of the largest batch, then the KV cache takes what is left of a share of the card.

use super::super::arith::{floor_div, mul};
use super::super::gpu::Gpu;
use super::super::launch::{CommandLine, Launch, MaxModelLen};
use super::super::model::{Attention, Dtype, FeedForward, Model};
use super::super::outcome::{GpuPlan, KvGroup, KvPlan, Plan, PlanError, Refusal, Resolved, Verdict};
use super::super::quantity::{Plane, Quantity, Term, Unknown};
use super::super::version::EngineKind;
use dualplane_base::Version;
use dualplane_base::units::MIB;

/// The newest release whose source was read.
const NEWEST: Version = Version(3, 3, 7);
/// `--max-batch-prefill-tokens` where the launcher does not compute one (launcher/src/main.rs).
const PREFILL: u64 = 4096;
/// Share of the fraction that the cache may take since 3.0 (`TGI_WIGGLE_ROOM`), in thousandths.
const ROOM: u64 = 900;
/// Shares that older releases took of what was free, in thousandths.
const OLD_ROOM: (u64, u64) = (900, 950);

const SOURCE: &str = "TGI server/text_generation_server/models/flash_causal_lm.py warmup";

/// Plans a launch of TGI.
///
/// # Errors
/// As [`super::super::plan`].
pub fn plan(model: &Model, line: &CommandLine, gpu: &Gpu) -> Result<Plan, PlanError> {
    let launch = &line.launch;
    let version = if launch.version_known { launch.version } else { NEWEST };
    let weights = weights(model, launch, gpu)?;
    let sizes = Sizes::of(model, line, version)?;
    let (prefill, assumed) = match launch.max_num_batched_tokens {
        Some(n) => (n, false),
        None => (PREFILL, true),
    };
    let fraction = launch.gpu_memory_utilization.unwrap_or(1.0);
    if !(0.0..=1.0).contains(&fraction) || fraction == 0.0 {
        return Err(PlanError::contradiction(
            "--cuda-memory-fraction",
            format!("{fraction} is not a valid share of the GPU"),
        ));
    }
    let total = gpu.total_bytes;
    let allowed = (total as f64 * fraction) as u64;
    let w = Quantity::within(weights.gpu.weights_bytes.expected, 0.015);
    let activation = activation(model, launch, prefill);
    let rest = Quantity { low: 300 * MIB, expected: 600 * MIB, high: 1200 * MIB };
    // The cache of the warm-up batch is allocated before it runs and counted back afterwards.
    let warm_blocks = prefill.div_ceil(sizes.block).saturating_add(1);
    let warm = warm_blocks.saturating_mul(sizes.block_bytes);
    let taken = w + activation + rest + Quantity::exact(warm);
    let budget = if version >= Version(3, 0, 0) {
        let room = line.tgi.room.unwrap_or(ROOM);
        Quantity::exact((allowed as f64 * room as f64 / 1000.0) as u64).minus(taken)
    } else {
        let (low, high) = line.tgi.room.map_or(OLD_ROOM, |r| (r, r));
        let free = Quantity::exact(allowed).minus(taken);
        let share = |bytes: u64, room: u64| (bytes as f64 * room as f64 / 1000.0) as u64;
        Quantity::band(share(free.low, low), share(free.expected, high), share(free.high, high))
    };
    let blocks = budget.map(|b| floor_div(b, sizes.block_bytes).saturating_add(warm_blocks));
    let tokens = blocks.map(|b| b.saturating_mul(sizes.block));
    let fits = judge(allowed, taken, tokens, &sizes, prefill);
    let (verdict, refusal) = fits;
    let pool = blocks.map(|b| b.saturating_mul(sizes.block_bytes));
    let concurrency = tokens.map(|t| t.saturating_mul(100) / sizes.len.max(1));
    let mut unknown = vec![Unknown {
        what: "the exact size of the warm-up batch's activations and memory outside PyTorch \
        (estimated)"
            .into(),
        settle: "start once: the log prints `Setting max batch total tokens to N`".into(),
    }];
    if assumed {
        unknown.push(Unknown {
            what: format!(
                "the prefill batch, which the launcher derives from the GPU; assumed {PREFILL} tokens"
            ),
            settle: "set --max-batch-prefill-tokens".into(),
        });
    }
    if !launch.version_known {
        unknown.push(Unknown {
            what: format!(
                "the engine version; assumed TGI {NEWEST} (before 3.0, the share of the GPU was \
            computed differently)"
            ),
            settle: "--engine-version, or an image with a version tag".into(),
        });
    }
    let mut terms: Vec<Term> = weights.terms.into_iter().filter(|t| t.name.starts_with("weights.")).collect();
    let mut add = |name: &str, quantity: Quantity, formula: String| {
        terms.push(Term { name: name.into(), plane: Plane::Gpu, quantity, formula, source: SOURCE.into() });
    };
    add(
        "activation.prefill",
        activation,
        format!(
            "{prefill} tokens × (one layer in 16 bits + vocabulary {} × 6 B (4 to 10) of logits and probabilities)",
            model.vocab_size
        ),
    );
    add("non_torch", rest, "CUDA context, NCCL and kernels; estimate".into());
    add(
        "kv_cache",
        pool,
        format!(
            "({}share of {fraction} × total − what the warm-up took) ÷ {} B a block, and the {warm_blocks} blocks of the warm-up",
            if version >= Version(3, 0, 0) { "0.90 " } else { "0.90 to 0.95 " },
            sizes.block_bytes
        ),
    );
    Ok(Plan {
        resolved: Resolved {
            prefix_caching: version >= Version(3, 0, 0),
            attention_backend: if sizes.block == 1 { "flashinfer" } else { "paged" }.into(),
            max_num_batched_tokens: prefill,
            max_in_flight_tokens: prefill,
            max_num_seqs: launch.max_num_seqs.unwrap_or(128),
            kv_cache_dtype: sizes.dtype.clone(),
            ..weights.resolved
        },
        gpu: GpuPlan {
            total_bytes: total,
            requested_bytes: allowed,
            weights_bytes: w,
            weights_by_class: weights.gpu.weights_by_class,
            activation_bytes: activation,
            // Captured afterwards, out of what the share leaves.
            cuda_graph_bytes: Quantity::default(),
            non_torch_bytes: rest,
            kv_cache: KvPlan {
                available_bytes: pool,
                blocks,
                tokens,
                max_concurrency_hundredths: concurrency,
                bytes_per_block: sizes.block_bytes,
                block_size: sizes.block,
                needed_bytes: sizes.len.div_ceil(sizes.block).saturating_mul(sizes.block_bytes),
                max_model_len: sizes.len,
                padding_layers: 0,
                groups: vec![KvGroup {
                    layers: model.layers.len() as u64,
                    kind: "full".into(),
                    block_size: sizes.block,
                    page_bytes: floor_div(sizes.block_bytes, model.layers.len() as u64),
                    blocks_per_request: sizes.len.div_ceil(sizes.block),
                    window: None,
                }],
            },
            tightest_stage: 0,
        },
        host: None,
        verdict,
        refusal,
        printed: Some(format!("Setting max batch total tokens to {}", tokens.expected)),
        estimated: false,
        terms,
        unknown,
    })
}

/// Weights of a rank: the same matrices are cut the same way as vLLM's.
fn weights(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Plan, PlanError> {
    let as_vllm = Launch {
        engine: EngineKind::Vllm,
        version: crate::NEWEST_VLLM,
        version_known: true,
        tp: launch.tp,
        dtype: launch.dtype.clone(),
        quantization: launch.quantization.clone(),
        available_kv_bytes: Some(gpu.total_bytes),
        enforce_eager: true,
        ..Launch::default()
    };
    super::super::plan(model, &as_vllm, gpu)
}

/// Warm-up: all matrices of a layer pass one batch (as in vLLM's prefill), then all its logits stand in memory
/// (`prefill_logprobs` of the warm-up request, backends/client/src).
fn activation(model: &Model, launch: &Launch, prefill: u64) -> Quantity {
    let width = model
        .layers
        .iter()
        .map(|l| match l.feed_forward {
            FeedForward::None => 0,
            FeedForward::Dense { intermediate, .. } => intermediate,
            FeedForward::Moe(m) => mul([m.top_k, m.intermediate]),
        })
        .max()
        .unwrap_or(0);
    let hidden = mul([3, model.hidden_size]);
    let sharded = mul([3, width]) / launch.tp.max(1);
    let layer = mul([prefill, hidden.saturating_add(sharded), 2]);
    // The warm-up asks for the probabilities of all its tokens: logits in 16 bits, and their softmax in 16 or 32.
    let logits = |bytes: u64| mul([prefill, model.vocab_size, bytes]);
    Quantity::band(
        (layer / 2).saturating_add(logits(4)),
        layer.saturating_add(logits(6)),
        layer.saturating_mul(2).saturating_add(logits(10)).saturating_add(256 * MIB),
    )
}

struct Sizes {
    block: u64,
    block_bytes: u64,
    len: u64,
    dtype: String,
}

impl Sizes {
    fn of(model: &Model, line: &CommandLine, version: Version) -> Result<Self, PlanError> {
        let launch = &line.launch;
        let (dtype, element) = match launch.kv_cache_dtype.as_str() {
            "auto" => (model.dtype.as_str().to_owned(), Dtype::Bfloat16.bytes()),
            "fp8_e4m3fn" | "fp8_e5m2" => (launch.kv_cache_dtype.clone(), 1),
            other => {
                return Err(PlanError::contradiction(
                    "--kv-cache-dtype",
                    format!("`{other}` is not a TGI cache type: fp8_e4m3fn, fp8_e5m2"),
                ));
            }
        };
        let mut row = 0_u64;
        for layer in &model.layers {
            row = row.saturating_add(match layer.attention {
                // Windows are paged at full length.
                Attention::Gqa(a) => {
                    let heads = (a.kv_heads / launch.tp.max(1)).max(1);
                    mul([heads, a.head_dim.saturating_add(a.v_head_dim)])
                }
                Attention::Mla(a) => a.kv_lora_rank.saturating_add(a.rope_dim),
                _ => return Err(PlanError::unsupported(format!("TGI's cache of {}", model.architecture))),
            });
        }
        // flashinfer pages single tokens; paged attention, which was the default before 3.0, sixteen.
        let block = launch.block_size.unwrap_or(if version >= Version(3, 0, 0) { 1 } else { 16 }).max(1);
        let len = match launch.max_model_len {
            MaxModelLen::Tokens(n) => n,
            _ if version < Version(2, 3, 0) => 2048,
            _ => model.max_model_len,
        };
        if let Some(input) = line.tgi.max_input_tokens.filter(|input| *input >= len) {
            return Err(PlanError::contradiction(
                "--max-input-tokens",
                format!("`max_input_tokens` must be < `max_total_tokens`: {input} and {len}"),
            ));
        }
        Ok(Self { block, block_bytes: mul([row, block, element]), len, dtype })
    }
}

/// The two ways in which the warm-up refuses.
fn judge(
    allowed: u64,
    taken: Quantity,
    tokens: Quantity,
    sizes: &Sizes,
    prefill: u64,
) -> (Verdict, Option<Refusal>) {
    let state = |taken: u64, tokens: u64| {
        if taken > allowed {
            Some(format!(
                "Not enough memory to handle {prefill} prefill tokens. You need to decrease `--max-batch-prefill-tokens`"
            ))
        } else if tokens < sizes.len {
            Some(format!(
                "`max_total_tokens` must be <= `max_batch_total_tokens`. Given: {} and {tokens}",
                sizes.len
            ))
        } else {
            None
        }
    };
    let worst = state(taken.high, tokens.low);
    let expected = state(taken.expected, tokens.expected);
    let best = state(taken.low, tokens.high);
    let verdict = match (&worst, &best) {
        (None, _) => Verdict::Fits,
        (_, Some(_)) => Verdict::Refused,
        _ => Verdict::Uncertain,
    };
    (verdict, expected.map(|message| Refusal { message, estimated_max_len: None }))
}

#[cfg(test)]
mod tests;
