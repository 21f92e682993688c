//! Where SGLang's code of a model differs: its weights from vLLM's, by whose layers the shapes are counted, and its pools from
//! those of other models.

use std::borrow::Cow;

use crate::engines::Shapes;
use crate::engines::shapes::rotary_in_32_bits;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::{Dtype, LinearScheme, Model};
use crate::outcome::{PlanError, TensorClass};

/// Names of architectures, from `knowledge/architectures.toml`.
pub(super) struct Code {
    attention_ranks: &'static [&'static str],
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
    let apart = Shapes::new(model, &served, gpu, attention_tp)?;
    let mut shapes = if attention_tp == launch.tp || is(CODE.attention_ranks) {
        apart
    } else {
        let mut all = Shapes::new(model, &served, gpu, launch.tp)?;
        // No start told of each of the others: the band reaches from one way to the other.
        let bytes = |s: &Shapes| s.fullest().1.total() as f64;
        all.band = all.band.max((bytes(&apart) / bytes(&all).max(1.0) - 1.0).abs());
        all
    };
    rotary_in_32_bits(&mut shapes, model);
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
