//! SGLang: a static share of what was free before loading holds weights and pool; the rest is for activations, graphs
//! and tables of requests. Nothing is profiled.
//!
//! Source: SGLang 0.5.23 arg_groups/memory_hook.py, mem_cache/kv_cache_configurator.py, model_executor/pool_configurator.py.

mod around;
mod cells;
mod code;
mod defaults;
mod images;
mod page;
mod pool;
mod read;
mod sizes;
mod states;
#[cfg(test)]
mod tests;
mod window;

pub use self::sizes::{Measured, Sizes, sizes};

use self::around::{encoder, outside, unknown};
use self::pool::{Cut, Memory, Pool};
use self::read::Read;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::Model;
use crate::outcome::{GpuPlan, KvGroup, KvPlan, Plan, PlanError, Resolved, Verdict};
use crate::quantity::{Plane, Quantity, Term};
use dualplane_base::Version;

/// The oldest release whose arithmetic was read.
const OLDEST: Version = Version(0, 4, 3);

/// The GPU plane.
pub(crate) fn plan(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Plan, PlanError> {
    if launch.version < OLDEST {
        return Err(PlanError::unsupported(format!("SGLang {}; known from {OLDEST}", launch.version)));
    }
    let read = Read::new(model, launch, gpu)?;
    let shapes = &read.shapes;
    let mib = defaults::driver_mib(gpu.total_bytes);
    let share = defaults::share(model, launch, mib);
    if !(share.expected > 0.0 && share.expected < 1.0) {
        return Err(PlanError::contradiction(
            "--mem-fraction-static",
            format!("{} is not between 0 and 1", share.expected),
        ));
    }
    let (stage, of_stage) = shapes.fullest();
    // Before 0.5.16 a drafter was loaded after the pool was sized.
    let drafter = if launch.version >= Version(0, 5, 16) { of_stage.drafter } else { 0 };
    let offloaded = launch.cpu_offload_bytes;
    let bytes = of_stage.total().saturating_add(drafter).saturating_sub(offloaded);
    let weights = Quantity::within(bytes, shapes.band);
    let outside = outside(launch);
    let before = Quantity::exact(gpu.total_bytes).minus(outside.quantity);
    let encoder = encoder(model, launch, gpu);
    // Least memory against the smallest share, most against the largest.
    let memory = |before: u64, weights: u64, share: f64, encoder: u64| Memory {
        before: before as f64,
        after: before as f64 - weights as f64,
        share,
        encoder: encoder as f64,
    };
    let low = memory(before.low, weights.high, share.low, encoder.high);
    let mid = memory(before.expected, weights.expected, share.expected, encoder.expected);
    let high = memory(before.high, weights.low, share.high, encoder.low);

    let overweight = high.after - high.before * (1.0 - high.share) - high.encoder <= 0.0;
    let (cells, states) = match (read.cells.clone(), read.states.clone()) {
        (Ok(c), Ok(s)) => (c, s),
        // Where even the weights are too much, no pool needs to be known.
        (Err(PlanError::Unsupported { .. }), _) | (_, Err(PlanError::Unsupported { .. }))
            if overweight && launch.available_kv_bytes.is_none() =>
        {
            (Vec::new(), None)
        }
        (Err(e), _) | (_, Err(e)) => return Err(e),
    };
    let given = launch.available_kv_bytes;
    let chunk = defaults::chunk_of_group(launch, mib.expected);
    let pool = read.pool(launch, &cells, states, chunk);
    let cut = |m: &Memory| given.map_or_else(|| pool.cut(m), |b| pool.printed(b, m.share));
    let cuts = [cut(&low), cut(&mid), cut(&high)];
    let [least, expected, most] = &cuts;
    let verdict = match (&least.refusal, &most.refusal) {
        (None, _) => Verdict::Fits,
        (Some(_), Some(_)) => Verdict::Refused,
        (Some(_), None) => Verdict::Uncertain,
    };
    let slack = |m: &Memory| (m.before * (1.0 - m.share) + m.encoder).max(0.0) as u64;
    // More memory with a larger share may leave more or less.
    let activation = Quantity::reaching(slack(&mid), slack(&low), slack(&high));
    let mut terms = shapes.terms(&of_stage);
    if drafter > 0 {
        terms.push(term(
            "weights.drafter",
            Quantity::within(drafter, shapes.band),
            "one copy of the model's last layer per multi-token prediction layer, plus its projection".into(),
            "SGLang models/deepseek_nextn.py, qwen3_next_mtp.py",
        ));
    }
    terms.push(term(
        "activation.reserve",
        activation,
        format!(
            "what was free before loading x (1 - {:.3}), where the share is {}: activations, graphs, tables of requests",
            share.expected, share.formula
        ),
        "SGLang mem_cache/kv_cache_configurator.py, arg_groups/memory_hook.py",
    ));
    terms.push(outside.clone());
    if let Some(s) = pool.states.filter(|_| given.is_none()) {
        terms.push(term(
            "kv.states",
            band(&cuts, |c| pool.state_bytes(c)),
            format!("{} states and one of padding x {} B", expected.states, s.each),
            "SGLang mem_cache/kv_cache_configurator.py _handle_max_mamba_cache",
        ));
    }
    let printed = expected.refusal.is_none().then(|| pool.lines(expected));
    let unknown = unknown(model, launch, shapes, states.is_some(), given.is_some());
    Ok(Plan {
        resolved: Resolved {
            architecture: model.architecture.clone(),
            dtype: shapes.dtype.as_str().into(),
            quantization: shapes.quantization.map(str::to_owned),
            kv_cache_dtype: read.kv_dtype.clone(),
            attention_backend: launch.attention_backend.clone().unwrap_or_else(|| "default".into()),
            max_num_seqs: expected.requests,
            max_num_batched_tokens: chunk.or(launch.sglang.max_prefill_tokens).unwrap_or(16_384),
            max_in_flight_tokens: chunk.or(launch.sglang.max_prefill_tokens).unwrap_or(16_384),
            prefix_caching: !launch.sglang.disable_radix_cache,
        },
        gpu: GpuPlan {
            total_bytes: gpu.total_bytes,
            // No cap: what the share does not hold is used as it comes.
            requested_bytes: gpu.total_bytes,
            weights_bytes: weights,
            weights_by_class: of_stage.by_class.clone(),
            activation_bytes: activation,
            cuda_graph_bytes: Quantity::default(),
            non_torch_bytes: outside.quantity,
            kv_cache: kv_plan(&pool, &cuts),
            tightest_stage: stage as u64,
        },
        host: None,
        verdict,
        refusal: expected.refusal.clone(),
        printed,
        estimated: false,
        terms,
        unknown,
    })
}

fn term(name: &str, quantity: Quantity, formula: String, source: &str) -> Term {
    Term { name: name.into(), plane: Plane::Gpu, quantity, formula, source: source.into() }
}

fn band(cuts: &[Cut; 3], f: impl Fn(&Cut) -> u64) -> Quantity {
    let [low, mid, high] = cuts;
    Quantity::band(f(low), f(mid), f(high))
}

fn kv_plan(pool: &Pool<'_>, cuts: &[Cut; 3]) -> KvPlan {
    let ratio = pool.launch.sglang.swa_full_tokens_ratio.unwrap_or(0.8);
    let widest = pool.cells.iter().map(|c| c.bytes(ratio)).fold(0.0, f64::max) as u64;
    let page = pool.page.max(1);
    let len = pool.context.max(1);
    let group = |kind: &str, part: &cells::Part| KvGroup {
        layers: part.layers,
        kind: kind.into(),
        block_size: page,
        page_bytes: part.bytes.saturating_mul(page) / part.layers.max(1),
        blocks_per_request: len.div_ceil(page),
        window: None,
    };
    let groups = pool.cells.first().map(|c| {
        let window = KvGroup {
            blocks_per_request: c.window_tokens.saturating_add(page).min(len).div_ceil(page),
            ..group("sliding", &c.window)
        };
        [group(if c.latent { "mla" } else { "full" }, &c.full), window]
    });
    let state = pool.states.map(|s| KvGroup {
        layers: s.layers,
        kind: "state".into(),
        block_size: len,
        page_bytes: s.each / s.layers.max(1),
        blocks_per_request: s.per_request,
        window: None,
    });
    KvPlan {
        available_bytes: band(cuts, |c| c.bytes.saturating_add(pool.state_bytes(c))),
        blocks: band(cuts, |c| c.tokens / page),
        tokens: band(cuts, |c| c.tokens),
        // SGLang prints no such figure; it is the pool over the length, for comparison with other engines.
        max_concurrency_hundredths: band(cuts, |c| (c.tokens as f64 / len as f64 * 100.0) as u64),
        bytes_per_block: widest.saturating_mul(page),
        block_size: page,
        needed_bytes: widest.saturating_mul(len),
        max_model_len: pool.context,
        padding_layers: 0,
        groups: groups.into_iter().flatten().filter(|g| g.layers > 0).chain(state).collect(),
    }
}
