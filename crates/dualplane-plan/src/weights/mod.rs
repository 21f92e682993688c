//! Weights of one rank by class of tensor, as the engine allocates them.

mod allocator;
mod attention;
mod drafter;
mod encoder;
mod feed_forward;
mod online;
mod per_layer;
mod plain_towers;
mod sound;
mod state_space;
mod tally;
mod towers;
mod workspace;

pub(crate) use online::as_served;
pub(crate) use tally::{Rank, Stage};

use super::gpu::Gpu;
use super::launch::Launch;
use super::launch::{Settled, stage_of};
use super::model::family::{Everywhere, Head, Mrope, Positions};
use super::model::{Family, Model, RotaryTable};
use super::outcome::{PlanError, TensorClass};
use dualplane_base::Version;
use tally::Tally;

/// The weights of one rank of each pipeline stage.
pub(crate) fn stages(
    model: &Model,
    launch: &Launch,
    gpu: &Gpu,
    settled: &Settled,
) -> Result<Vec<Stage>, PlanError> {
    let rank = Rank::new(launch, gpu, settled);
    let of = stage_of(model.layers.len() as u64, launch.pp);
    (0..launch.pp).map(|stage| one(model, launch, settled, rank, stage, &of)).collect()
}

fn one(
    model: &Model,
    launch: &Launch,
    settled: &Settled,
    rank: Rank,
    stage: u64,
    of: &[u64],
) -> Result<Stage, PlanError> {
    let mut t = Tally::new(model, rank);
    let (first, last) = (stage == 0, stage + 1 == launch.pp);
    let padded = super::arith::round_up(model.vocab_size, 64);
    let rows = super::arith::round_up(padded, rank.tp) / rank.tp.max(1);
    // vLLM models/whisper.py: a plain embedding, neither padded nor cut.
    let rows = if model.family == Family::Whisper { model.vocab_size } else { rows };
    let everywhere = model.traits.everywhere;
    // vLLM models/opt.py: words may be narrower than the layers, with a projection before and behind them.
    let said = || model.text.get("word_embed_proj_dim").and_then(super::model::keys::number);
    let narrow = said().filter(|w| model.family == Family::Opt && *w != model.hidden_size);
    let width = narrow.unwrap_or(model.hidden_size);
    if narrow.is_some() {
        let ends = u64::from(first).saturating_add(u64::from(last));
        t.add(TensorClass::Other, [ends, width, model.hidden_size, rank.element]);
    }
    if first || (last && model.tied) || everywhere != Everywhere::Nothing {
        t.add(TensorClass::Embeddings, [rows, width, rank.element]);
        t.allocated(super::arith::mul([rows, width, rank.element]), 1);
    }
    let positions = match model.traits.positions {
        Positions::Learned => model.max_position,
        Positions::LearnedFromTwo => model.max_position.saturating_add(2),
        Positions::Rotary | Positions::None => 0,
    };
    if first {
        t.add(TensorClass::Embeddings, [positions, model.hidden_size, rank.element]);
    }
    if first && model.traits.causal_mask {
        t.add(TensorClass::Other, [model.max_position, model.max_position]);
    }
    let head = match model.traits.head {
        Head::Untied => !model.tied,
        Head::Always => true,
        Head::Never => false,
    };
    let tied = model.tied && model.traits.head == Head::Untied;
    if (head || tied) && (last || everywhere == Everywhere::EmbeddingAndHead) {
        t.head(rows, width, head);
    }
    per_layer::add(&mut t, model, first);
    state_space::shared(&mut t, model);
    for (index, layer) in model.layers.iter().enumerate().filter(|(i, _)| of.get(*i) == Some(&stage)) {
        t.layer = index as u64;
        attention::add(&mut t, model, &layer.attention);
        feed_forward::add(&mut t, model, &layer.feed_forward);
        t.add(TensorClass::Norms, [layer.norms, model.hidden_size, rank.element]);
    }
    if last {
        t.add(TensorClass::Norms, [1, model.hidden_size, rank.element]);
    }
    // The table of models with positions in three dimensions (vLLM layers/rotary_embedding/mrope.py).
    let single = model.traits.mrope == Mrope::Single && launch.version >= Version(0, 31, 0);
    let longer = if mrope(model) && !single { 4 } else { 1 };
    for table in &model.rotary {
        let table = &RotaryTable { positions: table.positions.saturating_mul(longer), ..*table };
        t.add(TensorClass::Rotary, [table.bytes(rank.element)]);
        t.allocated(super::arith::floor_div(table.bytes(rank.element), table.count.max(1)), table.count);
    }
    // Every stage builds the encoder.
    if !launch.language_model_only {
        encoder::add(&mut t, model, launch);
    }
    let before = t.total();
    workspace::add(&mut t, model, settled, stage, launch.pp, of);
    let workspace = t.total().saturating_sub(before);
    if last {
        t.adapters(&[rows], model.hidden_size, 1);
    }
    let stage = t.finish()?.with_workspace(workspace);
    Ok(if last { stage.with_drafter(drafter::bytes(model, launch, settled, rank)?) } else { stage })
}

/// Buffers of one stage that depend on what a step may hold, for other limits than the launch's.
pub(crate) fn workspace_of(
    model: &Model,
    rank: Rank,
    settled: &Settled,
    stage: u64,
    stages: u64,
    of: &[u64],
) -> u64 {
    let mut t = Tally::new(model, rank);
    workspace::add(&mut t, model, settled, stage, stages, of);
    t.total()
}

/// Whether positions have three dimensions: the rotary settings say how the elements are shared among them.
pub(crate) fn mrope(model: &Model) -> bool {
    ["rope_parameters", "rope_scaling"]
        .iter()
        .filter_map(|k| model.text.get(k))
        .any(|r| r.get("mrope_section").is_some())
}
