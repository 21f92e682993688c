//! The part of a plan that does not depend on how much memory there is: caches, groups and weights. Computed once, it
//! answers many questions about memory and lengths.

use crate::arith::mul;
use crate::engines::vllm::kv::{self, Groups, Need, Setting};
use crate::engines::vllm::pool::{self, Pool};
use crate::gpu::Gpu;
use crate::launch::{Launch, Settled};
use crate::model::{Attention, Family, Layer, Model, QuantMethod};
use crate::outcome::PlanError;
use crate::weights::{self, Stage};
use dualplane_base::Version;

/// A model on ranks.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) settled: Settled,
    pub(crate) groups: Groups,
    /// Bytes of one block id on each pipeline stage.
    pub(crate) bytes_per_block: Vec<u64>,
    /// Tokens per block.
    pub(crate) block_size: u64,
    /// Weights of one rank of each pipeline stage.
    pub(crate) stages: Vec<Stage>,
    /// Quantisation of the weights as served.
    pub(crate) quantization: Option<QuantMethod>,
    /// Pipeline stage of each layer.
    pub(crate) stage_of: Vec<u64>,
    launch: Launch,
}

/// Whether a compressed layer selects for itself.
const fn selects(layer: &Layer) -> bool {
    matches!(layer.attention, Attention::Compressed(c) if c.ratio == 4)
}

impl Prepared {
    /// Settles a launch, forms the caches and counts the weights.
    ///
    /// # Errors
    /// As [`crate::plan`].
    pub fn new(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Self, PlanError> {
        let changed = super::cpu::launch(launch, model, gpu);
        let launch = &changed;
        let served = weights::as_served(model, launch)?;
        let model = served.as_ref();
        let oldest = pool::oldest(model.family);
        if launch.version < oldest {
            return Err(PlanError::unsupported(format!(
                "{} on {} {}; known from {oldest}",
                model.architecture, launch.engine, launch.version
            )));
        }
        let settled = pool::settle(model, launch, gpu)?;
        let setting = Setting {
            launch,
            sm: gpu.sm(),
            kv_dtype: &settled.kv_dtype,
            dtype: settled.dtype,
            backend: settled.backend,
            align: settled.prefix_caching,
            ahead: settled.ahead,
            max_model_len: settled.max_model_len,
        };
        let (layers, block_size) = kv::specs(model, &setting)?;
        // The selectors' kernel wants blocks one after the other; without one, each layer has a stretch of its own (0.33.0
        // v1/attention/backends/mla/indexer.py `supported_kv_cache_layouts`). What 0.32 does there was not read.
        let outermost = model.family == Family::DeepseekV4
            && (launch.version < Version(0, 33, 0) || model.layers.iter().any(selects));
        // Off by itself for chunked attention in 0.12.0 and before, on in 0.16.0 (vLLM config/vllm.py).
        let chunked = layers.iter().any(|l| matches!(l.spec.kind, kv::Kind::Chunked { .. }));
        let unify = launch.disable_hybrid_kv_cache_manager || chunked && launch.version < Version(0, 14, 0);
        let groups = kv::groups(&layers, unify, outermost)?;
        let stage_of = crate::launch::stage_of(model.layers.len() as u64, launch.pp);
        let bytes_per_block = (0..launch.pp)
            .map(|stage| {
                groups.bytes_per_block(|member| {
                    layers
                        .get(member)
                        // A drafter's layers follow the last of the model and share its stage.
                        .and_then(|l| stage_of.get(usize::try_from(l.layer).ok()?).or(stage_of.last()))
                        .is_some_and(|s| *s == stage)
                })
            })
            .collect();
        let stages = weights::stages(model, launch, gpu, &settled)?;
        Ok(Self {
            settled,
            groups,
            bytes_per_block,
            block_size,
            stages,
            stage_of,
            quantization: model.quantization.as_ref().map(|q| q.method),
            launch: launch.as_ref().clone(),
        })
    }

    pub(crate) fn pool(&self) -> Pool<'_> {
        let len = self.settled.max_model_len;
        let shards = mul([self.launch.dcp, self.launch.pcp]);
        Pool {
            groups: &self.groups,
            bytes_per_block: &self.bytes_per_block,
            need: Need {
                len,
                in_flight: self.settled.in_flight,
                shards,
                extra: 0,
                step: self.settled.max_num_batched_tokens,
            },
            version: self.launch.version,
            shards,
            first_engine: self.launch.is_first_engine(),
        }
    }
}
