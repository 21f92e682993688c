//! Buffers that stay beside the weights and grow with what a step may hold.

use serde_json::Value;

use super::tally::Tally;
use crate::plan::arith::mul;
use crate::plan::model::keys::number;
use crate::plan::model::{Attention, Model};
use crate::plan::outcome::TensorClass::Other;
use crate::plan::pool::Settled;

pub(super) fn add(t: &mut Tally<'_>, model: &Model, settled: &Settled, stage: u64, stages: u64, of: &[u64]) {
    let tokens = settled.max_num_batched_tokens;
    let here = || model.layers.iter().zip(of).filter(|(_, s)| **s == stage).map(|(l, _)| &l.attention);
    // One table of selected tokens for all layers (vLLM models/deepseek_v2.py `topk_indices_buffer`).
    let selected = here().find_map(|a| match a {
        Attention::Mla(m) => m.indexer.map(|i| i.top_k),
        Attention::Compressed(c) => Some(c.indexer.top_k),
        _ => None,
    });
    if let Some(top_k) = selected {
        t.add(Other, [tokens, top_k, 4]);
    }
    let streams = model.text.get("hc_mult").and_then(number).unwrap_or(0);
    if streams > 0 && stage + 1 == stages {
        t.add(Other, [streams, streams, model.hidden_size, 4]);
        t.add(Other, [streams.saturating_add(1), 4]);
    }
    // Features of the encoder that deep layers add (vLLM models/qwen3_vl.py `deepstack_input_embeds`).
    if stage == 0
        && let Some(e) = &model.encoder
    {
        let deep = e.raw.get("deepstack_visual_indexes").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        t.add(Other, [mul([deep, tokens]), model.hidden_size, t.rank.element]);
    }
}
