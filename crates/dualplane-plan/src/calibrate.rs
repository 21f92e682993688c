//! What one start-up printed, kept as the residual of the prediction, so that the next question is answered closer.

use serde::{Deserialize, Serialize};

use super::gpu::Gpu;
use super::launch::Launch;
use super::outcome::Plan;
use super::printed::Printed;
use super::quantity::Quantity;
use dualplane_base::units::{GIB, MIB};

/// Engines print two decimals of a GiB: a printed pool is known to half of the last.
pub(crate) const PRINTED: u64 = GIB / 200;

/// Two starts of one configuration differ by this much (profiling is not repeatable to the byte).
const REPEAT: u64 = 64 * MIB;

/// The residual of one start-up. Written and read as TOML or JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// `dualplane.calibration/v1`.
    pub schema: String,
    /// Architecture of the model.
    pub architecture: String,
    /// Card.
    pub gpu: String,
    /// Engine and version, `vLLM 0.11`.
    pub engine: String,
    /// Tensor-parallel ranks.
    pub tp: u64,
    /// Pipeline stages.
    pub pp: u64,
    /// Sequences per step of that start.
    pub max_num_seqs: u64,
    /// Tokens per step of that start.
    pub max_num_batched_tokens: u64,
    /// Predicted pool minus printed pool, in bytes.
    pub pool_residual_bytes: i64,
    /// Predicted weights minus printed weights, in bytes, where they were printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_residual_bytes: Option<i64>,
    /// Activations that were predicted for that start, in bytes.
    pub activation_bytes: u64,
}

/// Schema id.
pub const CALIBRATION: &str = "dualplane.calibration/v1";

/// `vLLM 0.11`: the residual is a property of a minor release.
fn engine_of(launch: &Launch) -> String {
    format!("{} {}.{}", launch.engine, launch.version.0, launch.version.1)
}

impl Calibration {
    /// The residual of a prediction against the pool that the engine printed, in bytes.
    #[must_use]
    pub fn of(plan: &Plan, launch: &Launch, gpu: &Gpu, pool: u64, weights: Option<u64>) -> Self {
        let signed = |a: u64, b: u64| {
            i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(if a > b { i64::MAX } else { i64::MIN })
        };
        Self {
            schema: CALIBRATION.into(),
            architecture: plan.resolved.architecture.clone(),
            gpu: gpu.name.clone(),
            engine: engine_of(launch),
            tp: launch.tp,
            pp: launch.pp,
            max_num_seqs: plan.resolved.max_num_seqs,
            max_num_batched_tokens: plan.resolved.max_num_batched_tokens,
            pool_residual_bytes: signed(plan.gpu.kv_cache.available_bytes.expected, pool),
            weights_residual_bytes: weights.map(|w| signed(plan.gpu.weights_bytes.expected, w)),
            activation_bytes: plan.gpu.activation_bytes.expected,
        }
    }

    /// Why this residual says nothing about another launch; `None` where it does.
    #[must_use]
    pub fn unfit(&self, plan: &Plan, launch: &Launch, gpu: &Gpu) -> Option<String> {
        let pairs = [
            ("architecture", self.architecture.clone(), plan.resolved.architecture.clone()),
            ("card", self.gpu.clone(), gpu.name.clone()),
            ("engine", self.engine.clone(), engine_of(launch)),
            ("tensor-parallel size", self.tp.to_string(), launch.tp.to_string()),
            ("pipeline-parallel size", self.pp.to_string(), launch.pp.to_string()),
        ];
        if self.schema != CALIBRATION {
            return Some(format!("it is not a {CALIBRATION} file"));
        }
        pairs
            .into_iter()
            .find(|(_, own, asked)| own != asked)
            .map(|(what, own, asked)| format!("it was made for another {what}: {own}, not {asked}"))
    }

    /// The pool of a plan after this residual.
    #[must_use]
    pub fn pool(&self, plan: &Plan) -> Quantity {
        let predicted = plan.gpu.kv_cache.available_bytes.expected;
        let expected =
            u64::try_from(i128::from(predicted) - i128::from(self.pool_residual_bytes)).unwrap_or(0);
        // Activations follow their law only roughly where the step has another size: half of the difference is open.
        let changed = plan.gpu.activation_bytes.expected.abs_diff(self.activation_bytes) / 2;
        Quantity::around(expected, (PRINTED + REPEAT).saturating_add(changed))
    }
}

/// One figure of a start-up beside its prediction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// `weights`, `kv_cache.available`, `kv_cache.tokens`, ...
    pub name: String,
    /// What the formulas give, in bytes, tokens or hundredths.
    pub predicted: Quantity,
    /// What the engine printed.
    pub printed: u64,
    /// Unit of both: `bytes`, `tokens`, `hundredths`.
    pub unit: &'static str,
}

/// A start-up beside its prediction, figure by figure. Tokens and concurrency are predicted from the printed pool.
#[must_use]
pub fn compare(plan: &Plan, from_pool: Option<&Plan>, printed: &Printed) -> Vec<Measured> {
    let g = &plan.gpu;
    let mut out = Vec::new();
    let mut add = |name: &str, predicted: Quantity, printed: Option<u64>, unit: &'static str| {
        if let Some(printed) = printed {
            out.push(Measured { name: name.into(), predicted, printed, unit });
        }
    };
    add("total", Quantity::exact(g.total_bytes), printed.total, "bytes");
    add("weights", g.weights_bytes, printed.weights, "bytes");
    add("activation", g.activation_bytes, printed.activation, "bytes");
    add("cuda_graph", g.cuda_graph_bytes, printed.graph_estimate, "bytes");
    add("non_torch", g.non_torch_bytes, printed.non_torch, "bytes");
    add("kv_cache.available", g.kv_cache.available_bytes, printed.pool, "bytes");
    if let Some(p) = from_pool {
        let kv = &p.gpu.kv_cache;
        add("kv_cache.tokens", kv.tokens, printed.tokens, "tokens");
        add(
            "kv_cache.max_concurrency",
            kv.max_concurrency_hundredths,
            printed.concurrency_hundredths,
            "hundredths",
        );
    }
    out
}
