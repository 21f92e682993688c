//! Where SGLang's code of a model differs: its weights from vLLM's, by whose layers the shapes are counted, and its pools from
//! those of other models.

use std::borrow::Cow;

use crate::engines::Shapes;
use crate::engines::shapes::rotary_in_32_bits;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::family::Mrope;
use crate::model::{Dtype, LinearScheme, Model};
use crate::outcome::{PlanError, TensorClass};
use crate::weights;

/// Where the engine runs transformers' code of a model: without tables of positions, and with what has no plan for several
/// ranks whole on each. 19 % above and 4 % below were seen.
const FOREIGN_BAND: f64 = 0.25;

/// Where it runs code of its own, which has tables and gates of its own: 1.0 % above and 0.9 % below were seen.
const OWN_BAND: f64 = 0.012;

/// Names of architectures, from `knowledge/architectures.toml`.
pub(super) struct Code {
    attention_ranks: &'static [&'static str],
    embedding_of_group: &'static [&'static str],
    embedding_of_all: &'static [&'static str],
    embedding_apart: &'static [&'static str],
    embedding_whole: &'static [&'static str],
    transformers_code: &'static [&'static str],
    head_in_32_bits: &'static [&'static str],
    head_of_its_own: &'static [&'static str],
    pub(super) own_windows: &'static [&'static str],
    pub(super) two_more_states: &'static [&'static str],
    pub(super) trtllm_mla: &'static [&'static str],
    pub(super) triton_on_blackwell: &'static [&'static str],
}

pub(super) const CODE: Code = include!(concat!(env!("OUT_DIR"), "/sglang.rs"));

/// The model as SGLang reads its files: it also looks where vLLM does not for what ModelOpt says.
pub(super) fn as_read(model: &Model) -> Cow<'_, Model> {
    let Some(aside) = &model.aside else { return Cow::Borrowed(model) };
    Cow::Owned(Model {
        quantization: Some(aside.weights.clone()),
        declared_kv_dtype: aside.kv_dtype.clone(),
        ..model.clone()
    })
}

/// Weights of each stage, with these ranks for the attention.
pub(super) fn shapes(
    model: &Model,
    launch: &Launch,
    gpu: &Gpu,
    attention_tp: u64,
) -> Result<Shapes, PlanError> {
    let served = served(model, launch);
    let is = |names: &[&str]| names.contains(&model.architecture.as_str());
    let members = is(CODE.attention_ranks);
    let apart = attention_tp != launch.tp;
    let embedding_tp = if is(CODE.embedding_whole) || apart && is(CODE.embedding_apart) {
        1
    } else if is(CODE.embedding_of_group) || members && !is(CODE.embedding_of_all) {
        attention_tp
    } else {
        launch.tp
    };
    // It pads no unquantised experts, as vLLM does for its kernels on Blackwell.
    let plain = model.quantization.is_none() && served.quantization.is_none();
    let hopper = Gpu { capability: (9, 0), ..gpu.clone() };
    let gpu = if plain && gpu.capability.0 == 10 { &hopper } else { gpu };
    let with = |attention_tp| Shapes::new(model, &served, gpu, attention_tp, embedding_tp);
    let mut shapes = with(if members { attention_tp } else { launch.tp })?;
    let own = if is(CODE.transformers_code) { FOREIGN_BAND } else { OWN_BAND };
    shapes.band = shapes.band.max(own);
    if apart && !members {
        // No start told of each of the others: the band reaches from one way to the other.
        let bytes = |s: &Shapes| s.fullest().1.total() as f64;
        shapes.band = shapes.band.max((bytes(&with(attention_tp)?) / bytes(&shapes).max(1.0) - 1.0).abs());
    }
    if launch.tp > 1 {
        let tower = tower_band(&shapes, launch.tp, attention_tp);
        shapes.band = shapes.band.max(tower);
    }
    rotary_in_32_bits(&mut shapes, model);
    as_its_own(&mut shapes, model, launch.tp);
    if is(CODE.transformers_code) {
        // Transformers computes the angles of each step anew.
        shapes.stages.iter_mut().for_each(|s| s.by_class.retain(|(c, _)| *c != TensorClass::Rotary));
    }
    for stage in &mut shapes.stages {
        let of = |class| stage.by_class.iter().find(|(c, _)| *c == class).map_or(0, |(_, b)| *b);
        let (head, embedding) = (of(TensorClass::LmHead), of(TensorClass::Embeddings));
        let more = if is(CODE.head_in_32_bits) && served.dtype != "float32" {
            head
        } else if is(CODE.head_of_its_own) && head == 0 {
            embedding
        } else {
            0
        };
        if more > 0 {
            stage.by_class.retain(|(c, _)| *c != TensorClass::LmHead);
            stage.by_class.push((TensorClass::LmHead, head.saturating_add(more)));
        }
    }
    Ok(shapes)
}

/// How far the weights may be from these where the tower of pictures or sound is whole on each rank, or cut over the ranks
/// or over those of its group; which of them is told by no start of most models.
fn tower_band(shapes: &Shapes, tp: u64, attention_tp: u64) -> f64 {
    let (_, stage) = shapes.fullest();
    let tower =
        stage.by_class.iter().find(|(c, _)| *c == TensorClass::Vision).map_or(0.0, |(_, b)| *b as f64);
    let cut = tower * (1.0 - 1.0 / tp as f64);
    let whole = if attention_tp == tp { 0.0 } else { tower * (tp as f64 / attention_tp.max(1) as f64 - 1.0) };
    cut.max(whole) / (stage.total() as f64).max(1.0)
}

/// Where its modules are others: a feed-forward that vLLM holds whole on each rank is cut (models/gpt_bigcode.py), and the
/// table of positions in three dimensions is as long as the context (layers/rotary_embedding/mrope.py).
fn as_its_own(shapes: &mut Shapes, model: &Model, tp: u64) {
    let single = model.traits.mrope == Mrope::Single;
    let element = shapes.dtype.bytes();
    let longer = if weights::mrope(model) && !single {
        model.rotary.iter().map(|t| t.bytes(element).saturating_mul(3)).fold(0, u64::saturating_add)
    } else {
        0
    };
    let shares = if model.traits.mlp_whole { tp.max(1) } else { 1 };
    for (class, bytes) in shapes.stages.iter_mut().flat_map(|s| s.by_class.iter_mut()) {
        match class {
            TensorClass::Mlp => *bytes = bytes.div_ceil(shares),
            TensorClass::Rotary => *bytes = bytes.saturating_sub(longer),
            _ => {}
        }
    }
}

/// What 32 bits are served in: float16, but for Gemma (configs/model_config.py `_get_and_verify_dtype`) and gpt-oss, whose
/// experts want bfloat16 (arg_groups/model_overrides/gpt_oss.py).
fn served(model: &Model, launch: &Launch) -> Launch {
    let four_bits = model.quantization.as_ref().is_some_and(|q| q.experts == LinearScheme::Mxfp4);
    let narrowed = launch.dtype == "auto"
        && model.dtype == Dtype::Float32
        && !four_bits
        && model.traits.float16
        && !model.model_type.starts_with("gemma");
    let dtype = if narrowed { "float16".to_owned() } else { launch.dtype.clone() };
    Launch { dtype, ..launch.clone() }
}
