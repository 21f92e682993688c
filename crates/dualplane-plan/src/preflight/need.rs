//! What a launch needs of one card, and whether it starts there: empty, and as it is now.

use super::holders::IDLE;
use super::seen::Card;
use crate::card::Placed;
use crate::cli::CommandLine;
use crate::engines::vllm::pool::{checks, own};
use crate::{Answer, Calibration, EngineKind, Launch, Named, Plan, PlanError, Quantity, Verdict, answer};
use dualplane_base::units::Bytes;

/// What is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Model.
    pub named: &'a Named,
    /// Command line.
    pub line: &'a CommandLine,
    /// Residual of a start-up.
    pub calibration: Option<&'a Calibration>,
    /// A card that was named, instead of the driver's.
    pub named_card: Option<&'a Placed>,
}

/// The answer for one card.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    pub(super) need: Quantity,
    /// What the engine may take of the card, where that is too little for what it must hold.
    pub(super) too_little: Option<Bytes>,
    pub(super) empty: Verdict,
    /// `None`: the plan does not hold on a card that others use.
    pub(super) now: Option<Verdict>,
    /// What the engine would print on an empty card, where it refuses.
    pub(super) refusal: Option<String>,
    /// What it would print now.
    pub(super) message: Option<String>,
}

impl Ask<'_> {
    fn at(&self, placed: &Placed, free: u64) -> Result<Answer, PlanError> {
        let launch = &self.line.launch;
        let given = launch.available_kv_bytes.or(launch.kv_cache_memory_bytes).is_some();
        // A residual is one of an empty card; a version that subtracts what others hold has another pool beside them.
        let holds = checks(launch) || free >= placed.gpu.total_bytes;
        let calibration = self.calibration.filter(|_| !given && holds);
        let mut line = self.line.clone();
        line.launch.free_gpu_bytes = Some(free.min(placed.gpu.total_bytes));
        answer(self.named, &line, placed, calibration)
    }

    /// Both planes on an empty card.
    pub(super) fn empty(&self, placed: &Placed) -> Result<Answer, PlanError> {
        self.at(placed, placed.gpu.total_bytes)
    }

    /// Compares the plan with a card. `None` where this engine has no plan.
    pub(super) fn fit(&self, placed: &Placed, card: &Card) -> Result<Option<Fit>, PlanError> {
        let Some(Bytes(free)) = card.free else { return Ok(None) };
        let launch = &self.line.launch;
        let on_empty = self.empty(placed)?;
        let Ok(plan) = &on_empty.plan else { return Ok(None) };
        let total = placed.gpu.total_bytes;
        let need = need(launch, plan);
        let (empty, refusal) = self.verdict(placed, total, need, &on_empty)?;
        let idle = card.processes.is_empty() && card.used.is_some_and(|u| u.0 <= IDLE);
        let (now, message) = match launch.engine {
            EngineKind::Vllm => {
                let a = self.at(placed, free)?;
                let (v, m) = self.verdict(placed, free, need, &a)?;
                (Some(v), m)
            }
            EngineKind::LlamaCpp => (Some(worst(empty, room(need, free))), None),
            // Their pools are shares of what is free: a plan is one of an empty card.
            EngineKind::Sglang | EngineKind::Tgi | EngineKind::TensorrtLlm => (idle.then_some(empty), None),
        };
        let refused = plan.verdict == Verdict::Refused;
        let need = if refused { least(launch, plan) } else { need };
        let too_little = refused.then_some(Bytes(plan.gpu.requested_bytes));
        Ok(Some(Fit { need, too_little, empty, now, refusal, message }))
    }

    /// The plan's verdict with so much free, and the engine's words where it refuses.
    fn verdict(
        &self,
        placed: &Placed,
        free: u64,
        need: Quantity,
        a: &Answer,
    ) -> Result<(Verdict, Option<String>), PlanError> {
        let launch = &self.line.launch;
        let said =
            |a: &Answer| a.plan.as_ref().ok().and_then(|p| p.refusal.as_ref()).map(|r| r.message.clone());
        let mut verdict = a.engine_verdict();
        if launch.engine == EngineKind::Vllm {
            if checks(launch) && room(need, free) == Verdict::Refused {
                // When the engine looks, it has taken its own context already.
                let later = self.at(placed, free.saturating_sub(own(launch).0))?;
                return Ok((Verdict::Refused, said(&later)));
            }
            if checks(launch) || fixed(launch) {
                verdict = worst(verdict, room(need, free));
            }
        }
        let message = (verdict == Verdict::Refused).then(|| said(a)).flatten();
        Ok((verdict, message))
    }
}

/// The pool is given, whatever else the card holds.
fn fixed(launch: &Launch) -> bool {
    launch.kv_cache_memory_bytes.is_some() || launch.num_gpu_blocks_override.is_some()
}

/// What must be free before the start, in bytes.
fn need(launch: &Launch, plan: &Plan) -> Quantity {
    let g = &plan.gpu;
    let parts: Quantity =
        [g.weights_bytes, g.activation_bytes, g.cuda_graph_bytes, g.non_torch_bytes].into_iter().sum();
    let (least, most) = own(launch);
    let own = Quantity::band(least, least.midpoint(most), most);
    let pool = match launch.num_gpu_blocks_override {
        Some(n) => Quantity::exact(n.saturating_mul(g.kv_cache.bytes_per_block)),
        None => g.kv_cache.available_bytes,
    };
    match launch.engine {
        EngineKind::Vllm if fixed(launch) && checks(launch) => {
            (parts + pool).max(Quantity::exact(g.requested_bytes)) + own
        }
        EngineKind::Vllm if fixed(launch) => parts + pool,
        EngineKind::Vllm if checks(launch) => Quantity::exact(g.requested_bytes) + own,
        EngineKind::LlamaCpp => parts + pool,
        // The least with which it can serve one request of the full length.
        _ => parts + Quantity::exact(g.kv_cache.needed_bytes),
    }
}

/// The least with which it would start, where it does not: one request of the full length.
fn least(launch: &Launch, plan: &Plan) -> Quantity {
    let g = &plan.gpu;
    let (least, most) = if launch.engine == EngineKind::Vllm { own(launch) } else { (0, 0) };
    let parts = [
        g.weights_bytes,
        g.activation_bytes,
        g.cuda_graph_bytes,
        g.non_torch_bytes,
        Quantity::exact(g.kv_cache.needed_bytes),
        Quantity::band(least, least.midpoint(most), most),
    ];
    parts.into_iter().sum()
}

/// By which rule the engine looks at free memory.
pub(super) fn rule(launch: &Launch) -> String {
    let version = launch.version;
    match launch.engine {
        EngineKind::Vllm if checks(launch) => {
            let share =
                launch.gpu_memory_utilization.unwrap_or_else(|| crate::repair::default_utilisation(version));
            let (least, most) = own(launch);
            format!(
                "vLLM {version} refuses to start if less than --gpu-memory-utilization {share:?} of the \
                total is free; it checks after it has used {} to {} itself (v1/worker/utils.py \
                request_memory, 0.9.2 and later)",
                Bytes(least),
                Bytes(most)
            )
        }
        EngineKind::Vllm => format!(
            "vLLM {version} does not check free memory: memory used by other processes reduces its KV \
            cache (before 0.9.2, and in the V0 engine)"
        ),
        EngineKind::LlamaCpp => "llama.cpp allocates weights, KV cache and buffers when it starts".into(),
        other => {
            format!(
                "{other} takes a share of the memory that is free at start; its plan assumes an empty \
            GPU"
            )
        }
    }
}

fn room(need: Quantity, free: u64) -> Verdict {
    if free >= need.high {
        Verdict::Fits
    } else if free < need.low {
        Verdict::Refused
    } else {
        Verdict::Uncertain
    }
}

const fn worst(a: Verdict, b: Verdict) -> Verdict {
    match (a, b) {
        (Verdict::Refused, _) | (_, Verdict::Refused) => Verdict::Refused,
        (Verdict::Uncertain, _) | (_, Verdict::Uncertain) => Verdict::Uncertain,
        _ => Verdict::Fits,
    }
}
