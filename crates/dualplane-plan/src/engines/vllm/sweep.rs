//! Many questions about one model on the same ranks: other lengths, limits and shares of the card.

use crate::engines::vllm::budget::WEIGHTS_BAND;
use crate::engines::vllm::kv::Need;
use crate::engines::vllm::pool::{self, Blocks, Pool};
use crate::engines::vllm::prepare::Prepared;
use crate::gpu::Gpu;
use crate::launch::{Launch, Settled};
use crate::model::Model;
use crate::outcome::Verdict;
use crate::quantity::Quantity;
use crate::weights::{Rank, workspace_of};

/// One question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct At {
    /// `--max-model-len`, in tokens.
    pub max_model_len: u64,
    /// `--max-num-seqs`.
    pub max_num_seqs: u64,
    /// `--max-num-batched-tokens`.
    pub max_num_batched_tokens: u64,
    /// `--gpu-memory-utilization`.
    pub gpu_memory_utilization: f64,
}

/// Its answer, of the tightest stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The pool, in bytes.
    pub available_bytes: Quantity,
    /// Block ids.
    pub blocks: Quantity,
    /// Tokens as the engine would print them.
    pub tokens: Quantity,
    /// Requests of the maximum length at once, in hundredths.
    pub max_concurrency_hundredths: Quantity,
    /// Whether it starts.
    pub verdict: Verdict,
}

impl Prepared {
    /// The answer for other limits than those that were prepared. `model`, `launch` and `gpu` must be the same.
    #[must_use]
    pub fn at(&self, model: &Model, launch: &Launch, gpu: &Gpu, at: &At) -> Point {
        let per_token = self.settled.in_flight / self.settled.max_num_batched_tokens.max(1);
        let settled = Settled {
            max_model_len: at.max_model_len,
            max_num_seqs: at.max_num_seqs,
            max_num_batched_tokens: at.max_num_batched_tokens,
            in_flight: at.max_num_batched_tokens.saturating_mul(per_token),
            utilisation: at.gpu_memory_utilization,
            ..self.settled.clone()
        };
        let requested = (gpu.total_bytes as f64 * settled.utilisation).ceil() as u64;
        let rank = Rank::new(launch, gpu, &settled);
        let available: Vec<Quantity> = (0..self.stages.len())
            .map(|stage| self.available(model, launch, gpu, &settled, rank, requested, stage))
            .collect();
        let base = self.pool();
        let pool = Pool {
            need: Need {
                len: at.max_model_len,
                in_flight: settled.in_flight,
                step: at.max_num_batched_tokens,
                ..base.need
            },
            ..base
        };
        let cut = |f: fn(&Quantity) -> u64| -> Blocks {
            pool.cut(&available.iter().map(f).collect::<Vec<_>>(), false)
        };
        let (low, mid, high) = (cut(|q| q.low), cut(|q| q.expected), cut(|q| q.high));
        let hundredths = |b: &Blocks| (b.concurrency * 100.0).round_ties_even() as u64;
        Point {
            available_bytes: available.iter().copied().reduce(Quantity::min).unwrap_or_default(),
            blocks: Quantity::band(low.blocks, mid.blocks, high.blocks),
            tokens: Quantity::band(low.tokens, mid.tokens, high.tokens),
            max_concurrency_hundredths: Quantity::band(hundredths(&low), hundredths(&mid), hundredths(&high)),
            verdict: match (&low.refusal, &high.refusal) {
                (None, _) => Verdict::Fits,
                (Some(_), Some(_)) => Verdict::Refused,
                (Some(_), None) => Verdict::Uncertain,
            },
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "all of them are one question, and no caller has them together"
    )]
    fn available(
        &self,
        model: &Model,
        launch: &Launch,
        gpu: &Gpu,
        settled: &Settled,
        rank: Rank,
        requested: u64,
        stage: usize,
    ) -> Quantity {
        let Some(s) = self.stages.get(stage) else { return Quantity::default() };
        let stages = self.stages.len() as u64;
        let workspace = workspace_of(model, rank, settled, stage as u64, stages, &self.stage_of);
        let parts = [s.total().saturating_sub(s.workspace()), workspace, s.rounding(), s.lora(), s.drafter()];
        let bytes = parts.into_iter().fold(0, u64::saturating_add).saturating_sub(launch.cpu_offload_bytes);
        let last = stage + 1 == self.stages.len();
        let taken = Quantity::within(bytes, WEIGHTS_BAND)
            + pool::activation(model, launch, settled, last).quantity
            + pool::cuda_graphs(model, launch, bytes).quantity
            + pool::non_torch(model, launch, settled, last, gpu.total_bytes).quantity;
        Quantity::exact(requested).minus(taken)
    }
}
