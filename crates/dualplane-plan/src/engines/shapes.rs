//! Weights of one rank by the shapes that vLLM's core counts, without the workspaces of vLLM's own kernels.

use crate::arith::mul;
use crate::engines::vllm::pool;
use crate::gpu::Gpu;
use crate::launch::{Launch, MaxModelLen, Speculation, Speculative};
use crate::model::{Attention, Dtype, LinearScheme, Model, NAMED_QUANTIZATION};
use crate::outcome::{PlanError, TensorClass};
use crate::quantity::{Plane, Quantity, Term, Unknown};
use crate::version::EngineKind;
use crate::weights;

/// Shapes are the same in every engine. These read the driver's free memory before and after, which moves by whole
/// segments of the allocator: a start-up of 15.54 GiB was 0.6 % above the tensors.
const SAME_BAND: f64 = 0.008;
/// Where kernels lay weights out anew (latent attention, experts of four bits). Not measured for these engines.
const OTHER_BAND: f64 = 0.03;
/// Kernels of MXFP4 pad widths: under vLLM's Marlin gpt-oss holds 8.6 % more than on disk.
const PADDED_BAND: f64 = 0.09;

/// What a pipeline stage holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OfStage {
    pub(crate) by_class: Vec<(TensorClass, u64)>,
    /// What torch's allocator adds by rounding large tensors.
    pub(crate) rounding: u64,
    /// The checkpoint's own drafter.
    pub(crate) drafter: u64,
}

impl OfStage {
    pub(crate) fn total(&self) -> u64 {
        self.by_class.iter().fold(self.rounding, |sum, (_, b)| sum.saturating_add(*b))
    }
}

/// Weights of each stage, with what they are served in.
#[derive(Debug, Clone)]
pub(crate) struct Shapes {
    pub(crate) dtype: Dtype,
    pub(crate) quantization: Option<&'static str>,
    pub(crate) stages: Vec<OfStage>,
    /// Pipeline stage of each layer.
    pub(crate) stage_of: Vec<u64>,
    /// Relative width of the band.
    pub(crate) band: f64,
}

impl Shapes {
    /// Counts the weights of a launch with this many ranks for attention and for the embedding: fewer than for the rest
    /// under data-parallel attention.
    pub(crate) fn new(
        model: &Model,
        launch: &Launch,
        gpu: &Gpu,
        attention_tp: u64,
        embedding_tp: u64,
    ) -> Result<Self, PlanError> {
        let like = like(model, launch);
        let served = weights::as_served(model, &like)?;
        let model = served.as_ref();
        let (dtype, mut stages) = count(model, &like, gpu)?;
        for (tp, class) in [(attention_tp, TensorClass::Attention), (embedding_tp, TensorClass::Embeddings)] {
            if tp != launch.tp {
                let (_, apart) = count(model, &Launch { tp, ..like.clone() }, gpu)?;
                for (stage, apart) in stages.iter_mut().zip(apart) {
                    replace(stage, &apart, class);
                }
            }
        }
        Ok(Self {
            dtype,
            quantization: model.quantization.as_ref().map(|q| q.method.as_str()),
            stages,
            stage_of: crate::launch::stage_of(model.layers.len() as u64, launch.pp),
            band: band(model),
        })
    }

    /// The weights of the fullest stage, and which it is.
    pub(crate) fn fullest(&self) -> (usize, OfStage) {
        let at = self.stages.iter().enumerate().max_by_key(|(i, s)| (s.total(), usize::MAX - i));
        at.map_or((0, OfStage::default()), |(i, s)| (i, s.clone()))
    }

    /// Terms of a stage, which sum to its weights.
    pub(crate) fn terms(&self, stage: &OfStage) -> Vec<Term> {
        let term = |name: String, bytes: u64, formula: &str, source: &str| Term {
            name,
            plane: Plane::Gpu,
            quantity: Quantity::within(bytes, self.band),
            formula: formula.into(),
            source: source.into(),
        };
        let shapes = "tensor shapes from config.json, sharded as in the engine's layers";
        let mut out: Vec<Term> = stage
            .by_class
            .iter()
            .map(|(c, b)| {
                term(format!("weights.{}", c.as_str()), *b, "sum of the tensors of one rank", shapes)
            })
            .collect();
        if stage.rounding > 0 {
            let formula = "unused rest of an allocator block, up to 1 MiB for each tensor above 1 MiB";
            let source = "torch c10/cuda/CUDACachingAllocator.cpp";
            out.push(term("weights.allocator".into(), stage.rounding, formula, source));
        }
        out
    }

    /// What the shapes leave open.
    pub(crate) fn unknown(&self) -> Option<Unknown> {
        (self.band > SAME_BAND).then(|| Unknown {
            what: format!(
                "the weights as this engine's own code and kernels hold them: plus or minus {:.0} %",
                self.band * 100.0
            ),
            settle: "the start-up line with the size of the weights".into(),
        })
    }
}

fn band(model: &Model) -> f64 {
    let named = if model.quantized_by_name { NAMED_QUANTIZATION } else { 0.0 };
    kernels(model).max(named)
}

fn kernels(model: &Model) -> f64 {
    let latent =
        |l: &crate::model::Layer| matches!(l.attention, Attention::Mla(_) | Attention::Compressed(_));
    let stored = |wanted: fn(LinearScheme) -> bool| {
        model.quantization.as_ref().is_some_and(|q| wanted(q.default) || wanted(q.experts))
    };
    if stored(|s| s == LinearScheme::Mxfp4) {
        PADDED_BAND
    } else if model.layers.iter().any(latent) || stored(|s| matches!(s, LinearScheme::Nvfp4 { .. })) {
        OTHER_BAND
    } else {
        SAME_BAND
    }
}

/// The launch as the core of the weights reads it: only what changes shapes.
fn like(model: &Model, launch: &Launch) -> Launch {
    let mtp = launch.speculative.as_ref().is_some_and(|s| s.method == Speculation::Mtp);
    Launch {
        engine: EngineKind::Vllm,
        uneven_towers: true,
        version: crate::NEWEST_VLLM,
        version_known: true,
        tp: launch.tp,
        pp: launch.pp,
        expert_parallel: launch.expert_parallel,
        dtype: launch.dtype.clone(),
        quantization: launch.quantization.clone(),
        language_model_only: launch.language_model_only,
        max_model_len: MaxModelLen::Tokens(model.max_model_len.clamp(1, 4096)),
        max_num_seqs: Some(1),
        max_num_batched_tokens: Some(4096),
        kv_cache_dtype: "auto".into(),
        speculative: mtp.then_some(Speculative { method: Speculation::Mtp, num_tokens: 1, model: None }),
        ..Launch::default()
    }
}

fn count(model: &Model, like: &Launch, gpu: &Gpu) -> Result<(Dtype, Vec<OfStage>), PlanError> {
    let settled = pool::settle(model, like, gpu)?;
    let stages = weights::stages(model, like, gpu, &settled)?;
    let of = |s: weights::Stage| {
        // Workspaces of vLLM's kernels are among these two classes; repacked experts are in the second as well.
        let mut workspace = s.workspace();
        let mut without = |class| {
            let bytes = s.get(class);
            let taken = bytes.min(workspace);
            workspace -= taken;
            bytes - taken
        };
        let (other, unattached) = (without(TensorClass::Other), without(TensorClass::Unattached));
        let by_class = TensorClass::ALL
            .iter()
            .map(|c| match c {
                TensorClass::Moe => (*c, s.get(*c).saturating_sub(s.padding())),
                TensorClass::Other => (*c, other),
                TensorClass::Unattached => (*c, unattached),
                c => (*c, s.get(*c)),
            })
            .filter(|(_, b)| *b > 0)
            .collect();
        OfStage { by_class, rounding: s.rounding(), drafter: s.drafter() }
    };
    Ok((settled.dtype, stages.into_iter().map(of).collect()))
}

/// Takes a class from another count of the same stage.
fn replace(stage: &mut OfStage, from: &OfStage, class: TensorClass) {
    let bytes = from.by_class.iter().find(|(c, _)| *c == class).map_or(0, |(_, b)| *b);
    for (c, b) in &mut stage.by_class {
        if *c == class {
            *b = bytes;
        }
    }
}

/// Twice the rotary tables: kept in 32 bits where vLLM keeps 16.
pub(crate) fn rotary_in_32_bits(shapes: &mut Shapes, model: &Model) {
    let served = shapes.dtype.bytes();
    let more: u64 = model
        .rotary
        .iter()
        .filter(|t| t.element_bytes == 0)
        .map(|t| mul([t.positions, t.width, 4_u64.saturating_sub(served), t.count]))
        .fold(0, u64::saturating_add);
    for stage in &mut shapes.stages {
        for (class, bytes) in &mut stage.by_class {
            if *class == TensorClass::Rotary {
                *bytes = bytes.saturating_add(more);
            }
        }
    }
}
