//! Weights that propose tokens ahead: layers of the checkpoint, or a drafter of its own.

use super::tally::{Rank, Tally};
use super::{attention, feed_forward, one};
use crate::arith::{floor_div, mul, round_up};
use crate::drafter::counted;
use crate::launch::Settled;
use crate::launch::{Launch, Speculation};
use crate::model::keys::number;
use crate::model::{Attention, Family, Model};
use crate::outcome::{PlanError, TensorClass};

/// Bytes on a rank of the last stage.
pub(super) fn bytes(model: &Model, launch: &Launch, settled: &Settled, rank: Rank) -> Result<u64, PlanError> {
    match (counted(model, launch), launch.speculative.as_ref().map(|s| s.method)) {
        (Some(d), Some(Speculation::DraftModel)) => whole(d, launch, settled, rank),
        (Some(d), Some(Speculation::Eagle)) => eagle(model, d, launch, rank, false),
        (Some(d), Some(Speculation::Eagle3)) => eagle(model, d, launch, rank, true),
        _ => own_layers(model, launch, rank),
    }
}

/// A draft model shares nothing, and is not cut into stages.
fn whole(drafter: &Model, launch: &Launch, settled: &Settled, rank: Rank) -> Result<u64, PlanError> {
    let alone = Launch { pp: 1, lora: None, speculative: None, ..launch.clone() };
    let stage = vec![0; drafter.layers.len()];
    let stage = one(drafter, &alone, settled, Rank { lora: None, ..rank }, 0, &stage)?;
    Ok(stage.total().saturating_add(stage.rounding()))
}

/// vLLM models/llama_eagle.py and llama_eagle3.py. The embedding is the model's where there are no pipeline stages, the
/// head too but for EAGLE-3, which has a smaller vocabulary of its own with a table into the model's.
fn eagle(model: &Model, drafter: &Model, launch: &Launch, rank: Rank, third: bool) -> Result<u64, PlanError> {
    let mut t = Tally::new(drafter, Rank { lora: None, ..rank });
    let hidden = drafter.hidden_size;
    for (index, layer) in drafter.layers.iter().enumerate() {
        t.layer = index as u64;
        attention::add(&mut t, drafter, &layer.attention);
        feed_forward::add(&mut t, drafter, &layer.feed_forward);
        let mut norms = layer.norms;
        match (third, index, layer.attention) {
            (true, 0, Attention::Gqa(g)) => {
                // The embedding enters beside the hidden state: its half of the first projection.
                let (q, kv) = (floor_div(g.heads, rank.tp), crate::launch::kv_heads(g.kv_heads, rank.tp));
                let parts = [
                    ("q_proj", mul([q, g.head_dim])),
                    ("k_proj", mul([kv, g.head_dim])),
                    ("v_proj", mul([kv, g.v_head_dim])),
                ];
                t.linear(TensorClass::Attention, "self_attn", &parts, hidden, false);
                norms = norms.saturating_add(1);
            }
            (true, ..) => norms = norms.saturating_add(1),
            // The first layer of EAGLE has no norm of its input.
            (false, 0, _) => norms = norms.saturating_sub(1),
            _ => {}
        }
        t.add(TensorClass::Norms, [norms, hidden, rank.element]);
    }
    let key = |name: &str| drafter.text.get(name).and_then(number);
    let rows = |vocabulary: u64| floor_div(round_up(round_up(vocabulary, 64), rank.tp), rank.tp);
    if third {
        let seen = key("target_hidden_size").unwrap_or(hidden);
        t.plain(TensorClass::Other, hidden, mul([3, seen]));
        t.add(TensorClass::Norms, [1, hidden, rank.element]);
        let vocabulary = key("draft_vocab_size").unwrap_or(drafter.vocab_size);
        t.add(TensorClass::LmHead, [rows(vocabulary), hidden, rank.element]);
        t.add(TensorClass::Other, [vocabulary, 8]);
    } else {
        t.plain(TensorClass::Other, hidden, mul([2, hidden]));
    }
    if launch.pp > 1 || hidden != model.hidden_size {
        t.add(TensorClass::Embeddings, [rows(drafter.vocab_size), hidden, rank.element]);
    }
    Ok(t.finish()?.total())
}

/// Layers of multi-token prediction: the model's last layer again, with a projection of two inputs onto one. Embedding
/// and head are the model's.
fn own_layers(model: &Model, launch: &Launch, rank: Rank) -> Result<u64, PlanError> {
    let mtp = launch.speculative.as_ref().is_some_and(|s| s.method == Speculation::Mtp);
    let (true, Some(last)) = (mtp, model.layers.last()) else { return Ok(0) };
    let states = |a: &Attention| a.is_state() || matches!(a, Attention::None);
    let attention =
        model.layers.iter().rev().map(|l| l.attention).find(|a| !states(a)).unwrap_or(last.attention);
    let qwen = model.family == Family::QwenHybrid;
    let mut t = Tally::new(model, Rank { lora: None, ..rank });
    if qwen {
        t = t.named("mtp.layers");
    }
    for i in 0..model.mtp_layers.min(64) {
        t.layer = if qwen { i } else { i.saturating_add(model.layers.len() as u64) };
        attention::add(&mut t, model, &attention);
        feed_forward::add(&mut t, model, &last.feed_forward);
        t.add(TensorClass::Norms, [last.norms.saturating_add(3), model.hidden_size, rank.element]);
    }
    let share = if qwen { rank.tp } else { 1 };
    let rows = floor_div(model.hidden_size, share);
    let count = if qwen { 1 } else { model.mtp_layers.min(64) };
    t.add(TensorClass::Other, [count, rows, 2 * model.hidden_size, rank.element]);
    Ok(t.finish()?.total())
}
