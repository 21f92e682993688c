//! The other way round: which settings, and which card, hold a workload.

use serde::Serialize;

use super::gpu::Gpu;
use super::launch::{Launch, MaxModelLen};
use super::model::Model;
use super::outcome::{Plan, PlanError, Verdict};
use super::quantity::Quantity;
use dualplane_base::order::Order as _;
use dualplane_base::units::MIB;

/// More sequences at once are no setting that anybody runs.
const MAX_SEQS: u64 = 4096;

/// How much is left to chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Template {
    /// All requests at their longest at once, at the lower bound of the pool.
    #[default]
    Safe,
    /// Requests of the usual length, at the expected pool; a burst of long ones preempts.
    Performance,
}

/// Requests that are to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// Input and output of a usual request, tokens.
    pub usual_tokens: u64,
    /// Input and output of the longest that must be served, tokens.
    pub longest_tokens: u64,
    /// Requests at once.
    pub concurrency: u64,
    /// Template.
    pub template: Template,
}

/// Settings for one card, and whether they hold the workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fitted {
    /// Card.
    pub gpu: String,
    /// GPUs in all.
    pub gpus: u64,
    /// `--tensor-parallel-size`.
    pub tp: u64,
    /// Quantisation of the weights: the checkpoint's, or `fp8` while loading.
    pub quantization: Option<String>,
    /// `--kv-cache-dtype`.
    pub kv_cache_dtype: String,
    /// `--gpu-memory-utilization`.
    pub gpu_memory_utilization: f64,
    /// The longest `--max-model-len` that starts, at the lower bound of the pool.
    pub max_model_len: u64,
    /// The largest `--max-num-seqs` whose requests all fit at once.
    pub max_num_seqs: u64,
    /// Weights of one GPU, in bytes.
    pub weights_bytes: Quantity,
    /// Pool of one GPU at that many sequences, in bytes.
    pub pool_bytes: Quantity,
    /// Memory of all GPUs, in bytes: what is paid for.
    pub rented_bytes: u64,
    /// Whether it holds the workload.
    pub holds: Verdict,
    /// What it costs besides, or why it does not hold.
    pub remark: String,
}

/// What is used outside of the engine's share: the CUDA context, what NCCL takes before the first measurement, and
/// workspaces that come later. Bytes: the most for [`Template::Safe`], the middle else.
///
/// Source: public logs: idle cards start with 0.25 to 0.6 GiB taken, 1 to 2 GiB with 8 ranks; one engine on one GPU used
/// 1.82 GiB more than it requested (15.48 against 13.66).
fn outside(ranks: u64, template: Template) -> u64 {
    let (mid, most) = match ranks {
        0 | 1 => (900, 1864),
        2..=4 => (1200, 2300),
        _ => (2000, 3300),
    };
    MIB * if template == Template::Safe { most } else { mid }
}

/// The largest share of a card that an engine alone on it may be given, in whole hundredths.
#[must_use]
pub fn utilisation(gpu: &Gpu, ranks: u64, template: Template) -> f64 {
    let left = gpu.total_bytes.saturating_sub(outside(ranks, template)) as f64;
    (left / gpu.total_bytes.max(1) as f64 * 100.0).floor() / 100.0
}

/// A safe share, unless the workload only holds above it.
const SAFE_SHARE: f64 = 0.9;

/// Settings of a launch on a card for a workload.
///
/// # Errors
/// As [`super::plan`].
pub fn fit(model: &Model, launch: &Launch, gpu: &Gpu, ask: &Workload) -> Result<Fitted, PlanError> {
    let ranks = launch.tp.saturating_mul(launch.pp);
    let most = utilisation(gpu, ranks, ask.template);
    let Some(share) = launch.gpu_memory_utilization else {
        if ask.template == Template::Safe && most > SAFE_SHARE {
            let safe = fit_at(model, launch, gpu, ask, SAFE_SHARE)?;
            if safe.holds == Verdict::Fits {
                return Ok(safe);
            }
            let mut more = fit_at(model, launch, gpu, ask, most)?;
            if more.holds == Verdict::Fits {
                let why = format!("{SAFE_SHARE:.2} of the card is too little for it");
                more.remark = if more.remark.is_empty() { why } else { format!("{}; {why}", more.remark) };
                return Ok(more);
            }
            return Ok(safe);
        }
        return fit_at(model, launch, gpu, ask, most);
    };
    fit_at(model, launch, gpu, ask, share)
}

fn fit_at(
    model: &Model,
    launch: &Launch,
    gpu: &Gpu,
    ask: &Workload,
    share: f64,
) -> Result<Fitted, PlanError> {
    let ranks = launch.tp.saturating_mul(launch.pp);
    let base = Launch { gpu_memory_utilization: Some(share), ..launch.clone() };
    let at = |seqs: u64, len: MaxModelLen| {
        super::plan(model, &Launch { max_num_seqs: Some(seqs), max_model_len: len, ..base.clone() }, gpu)
    };
    let counted = match ask.template {
        Template::Safe => ask.longest_tokens,
        Template::Performance => ask.usual_tokens,
    };
    let concurrency = |p: &Plan| match ask.template {
        Template::Safe => p.gpu.kv_cache.max_concurrency_hundredths.low,
        Template::Performance => p.gpu.kv_cache.max_concurrency_hundredths.expected,
    };
    let wanted = at(ask.concurrency, MaxModelLen::Tokens(counted))?;
    let longest = at(ask.concurrency, MaxModelLen::Tokens(ask.longest_tokens))?;
    let enough = |seqs: u64| {
        at(seqs, MaxModelLen::Tokens(counted)).is_ok_and(|p| concurrency(&p) >= seqs.saturating_mul(100))
    };
    let seqs = most(enough);
    let band = wanted.gpu.kv_cache.max_concurrency_hundredths;
    let need = ask.concurrency.saturating_mul(100);
    let holds = match (longest.verdict, concurrency(&wanted) >= need, band.high >= need) {
        (Verdict::Fits, true, _) => Verdict::Fits,
        (Verdict::Refused, ..) | (_, _, false) => Verdict::Refused,
        _ => Verdict::Uncertain,
    };
    let settled = at(seqs.max(1), MaxModelLen::Tokens(counted)).unwrap_or(wanted);
    let pool = settled.gpu.kv_cache.available_bytes;
    let bound = if ask.template == Template::Safe { pool.low } else { pool.expected };
    // What fits is asked of the engine's own rule, `--max-model-len auto`, at the bound.
    let reach = Launch {
        available_kv_bytes: Some(bound),
        max_num_seqs: Some(seqs.max(1)),
        max_model_len: MaxModelLen::Fit,
        ..base.clone()
    };
    let max_model_len = super::plan(model, &reach, gpu)
        .ok()
        .filter(|p| p.refusal.is_none())
        .map_or(0, |p| p.gpu.kv_cache.max_model_len);
    Ok(Fitted {
        gpu: gpu.name.clone(),
        gpus: ranks.saturating_mul(launch.dp),
        tp: launch.tp,
        quantization: launch.quantization.clone().or_else(|| settled.resolved.quantization.clone()),
        kv_cache_dtype: settled.resolved.kv_cache_dtype.clone(),
        gpu_memory_utilization: share,
        max_model_len,
        max_num_seqs: seqs,
        weights_bytes: settled.gpu.weights_bytes,
        pool_bytes: pool,
        rented_bytes: gpu.total_bytes.saturating_mul(ranks).saturating_mul(launch.dp),
        holds,
        remark: remark(model, launch, holds, &longest, seqs, ask),
    })
}

/// The largest number for which a falling predicate holds; 0: none.
fn most(enough: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, MAX_SEQS);
    while low < high {
        let mid = low + (high - low).div_ceil(2);
        if enough(mid) {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    low
}

fn remark(
    model: &Model,
    launch: &Launch,
    holds: Verdict,
    longest: &Plan,
    seqs: u64,
    ask: &Workload,
) -> String {
    if longest.verdict == Verdict::Refused {
        return format!("does not start with {} tokens", ask.longest_tokens);
    }
    if holds != Verdict::Fits {
        return format!("{seqs} of {} requests at once", ask.concurrency);
    }
    let mut out = Vec::new();
    if launch.quantization.as_deref() == Some("fp8") {
        out.push("weights in fp8".to_owned());
    }
    if launch.kv_cache_dtype == "fp8" {
        out.push("KV in fp8".to_owned());
    }
    if model.kv_heads > 0 && launch.tp > model.kv_heads {
        out.push(format!("{} KV heads are replicated to {} ranks", model.kv_heads, launch.tp));
    }
    out.join("; ")
}

/// What is tried for a model: cards, ranks, and what may be quantised.
///
/// The answers are sorted: what holds first, then by memory paid for, then by what is lost. Combinations that an engine
/// rejects are left out.
#[must_use]
pub fn alternatives(model: &Model, launch: &Launch, cards: &[Gpu], ask: &Workload) -> Vec<Fitted> {
    let mut out = Vec::new();
    for gpu in cards {
        for tp in [1, 2, 4, 8] {
            for (weights, kv) in ways(model, launch, gpu) {
                let quantization = weights.map(str::to_owned).or_else(|| launch.quantization.clone());
                let kv_cache_dtype = kv.map_or_else(|| launch.kv_cache_dtype.clone(), str::to_owned);
                let l =
                    Launch { tp, quantization, kv_cache_dtype, available_kv_bytes: None, ..launch.clone() };
                let fitted = fit(model, &l, gpu, ask);
                if let Ok(f) = fitted {
                    let stop = f.holds == Verdict::Fits;
                    out.push(f);
                    // Nothing more is given up where less is enough.
                    if stop {
                        break;
                    }
                }
            }
        }
    }
    out.order_by_key(|f| (rank(f.holds), f.rented_bytes, f.gpus, f.remark.clone()));
    out
}

const fn rank(v: Verdict) -> u8 {
    match v {
        Verdict::Fits => 0,
        Verdict::Uncertain => 1,
        Verdict::Refused => 2,
    }
}

/// Quantisations that card and checkpoint allow, the least loss first.
fn ways(model: &Model, launch: &Launch, gpu: &Gpu) -> Vec<(Option<&'static str>, Option<&'static str>)> {
    let mut out = vec![(None, None)];
    if gpu.sm() < 89 {
        return out;
    }
    let kv = launch.kv_cache_dtype == "auto";
    if kv {
        out.push((None, Some("fp8")));
    }
    if model.quantization.is_none() && launch.quantization.is_none() {
        out.push((Some("fp8"), None));
        if kv {
            out.push((Some("fp8"), Some("fp8")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::place;
    use crate::model::ModelFiles;

    fn model(id: &str) -> Model {
        let e = crate::catalogue::find(id).unwrap();
        Model::read(&ModelFiles {
            config: e.config(),
            hf_quant_config: e.hf_quant_config(),
            ..ModelFiles::default()
        })
        .unwrap()
    }

    fn card(name: &str) -> Gpu {
        place(&crate::card::embedded().unwrap(), Some(name), None).unwrap().gpu
    }

    const ASK: Workload =
        Workload { usual_tokens: 2000, longest_tokens: 16_000, concurrency: 16, template: Template::Safe };

    #[test]
    fn what_is_told_holds_when_it_is_planned() {
        let (m, g) = (model("Qwen/Qwen3-8B"), card("H100-80GB"));
        let f = fit(&m, &Launch::default(), &g, &ASK).unwrap();
        assert_eq!(f.holds, Verdict::Fits);
        assert!(f.max_num_seqs >= 16);
        let at = |seqs: u64| {
            let launch = Launch {
                max_num_seqs: Some(seqs),
                max_model_len: MaxModelLen::Tokens(16_000),
                gpu_memory_utilization: Some(f.gpu_memory_utilization),
                ..Launch::default()
            };
            crate::plan(&m, &launch, &g).unwrap().gpu.kv_cache.max_concurrency_hundredths.low
        };
        assert!(at(f.max_num_seqs) >= f.max_num_seqs * 100);
        assert!(at(f.max_num_seqs + 1) < (f.max_num_seqs + 1) * 100, "one more would not fit");
        assert!(
            (f.gpu_memory_utilization - 0.9).abs() < 1e-9,
            "safe is at most 0.90 unless it does not hold"
        );
        // One that holds only above it says so.
        let tight = Workload { concurrency: 31, ..ASK };
        let f = fit(&m, &Launch::default(), &g, &tight).unwrap();
        if f.gpu_memory_utilization > 0.9 {
            assert!(f.holds == Verdict::Fits && f.remark.contains("0.90"), "{f:?}");
        }
    }

    #[test]
    fn performance_asks_for_less_than_safety() {
        let (m, g) = (model("Qwen/Qwen3-8B"), card("L4"));
        let safe = fit(&m, &Launch::default(), &g, &ASK).unwrap();
        let fast =
            fit(&m, &Launch::default(), &g, &Workload { template: Template::Performance, ..ASK }).unwrap();
        assert!(fast.max_num_seqs > safe.max_num_seqs);
        assert_eq!(safe.holds, Verdict::Refused, "{safe:?}");
    }

    #[test]
    fn the_smallest_that_holds_stands_first() {
        let m = model("meta-llama/Llama-3.1-70B-Instruct");
        let cards = ["L4", "A100-80GB", "H100-80GB", "H200"].map(card);
        let all = alternatives(&m, &Launch::default(), &cards, &ASK);
        let first = &all[0];
        assert_eq!(first.holds, Verdict::Fits);
        assert!(
            all.iter().filter(|f| f.holds == Verdict::Fits).all(|f| f.rented_bytes >= first.rented_bytes)
        );
        assert!(all.iter().all(|f| f.gpu != "L4" || f.holds != Verdict::Fits || f.tp == 8));
    }
}
