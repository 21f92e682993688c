//! Gemma's inputs of each layer: an embedding of its own for every layer, and what carries it in; and what Gemma 3n has
//! beside its layers.

use super::tally::Tally;
use crate::arith::{floor_div, mul, round_up};
use crate::model::keys::number;
use crate::model::{Family, Model};
use crate::outcome::TensorClass::{Embeddings, Other};

/// vLLM models/gemma4.py and gemma3n.py: `embed_tokens_per_layer` and its projections.
pub(super) fn add(t: &mut Tally<'_>, model: &Model, first: bool) {
    if !matches!(model.family, Family::Gemma4 | Family::Gemma3n) {
        return;
    }
    let key = |name: &str| model.text.get(name).and_then(number);
    let width = key("hidden_size_per_layer_input").unwrap_or(0);
    let element = t.rank.element;
    let layers = model.layers.len() as u64;
    if width > 0 {
        let rows = key("vocab_size_per_layer_input").unwrap_or(model.vocab_size);
        let rows = floor_div(round_up(round_up(rows, 64), t.rank.tp), t.rank.tp);
        let all = mul([layers, width]);
        if first {
            t.add(Embeddings, [rows, all, element]);
            t.add(Other, [floor_div(all, t.rank.tp), model.hidden_size, element]);
        }
        // A gate in and a projection out on each layer, whole on each rank.
        t.add(Other, [layers, 2, width, model.hidden_size, element]);
    }
    // A network for what the last step of a block thought of it, whole on each rank (vLLM models/diffusion_gemma.py).
    if model.canvas().is_some() {
        let own = model.config.get("self_conditioning_size").and_then(number).filter(|n| *n > 0);
        let inner = own.or_else(|| key("intermediate_size")).unwrap_or(0);
        t.add(Other, [mul([3, inner]).saturating_add(1), model.hidden_size, element]);
    }
    if model.family == Family::Gemma3n {
        three_n(t, model, layers);
    }
}

/// Alternating streams of the residual, and a narrow network beside each attention.
fn three_n(t: &mut Tally<'_>, model: &Model, layers: u64) {
    let key = |name: &str, default: u64| model.text.get(name).and_then(number).unwrap_or(default);
    let (hidden, element) = (model.hidden_size, t.rank.element);
    let streams = key("altup_num_inputs", 4);
    let laurel = key("laurel_rank", 64);
    t.add(Other, [mul([2, streams.saturating_sub(1)]), hidden, floor_div(hidden, t.rank.tp), element]);
    let narrow = floor_div(mul([2, laurel]), t.rank.tp);
    t.add(Other, [layers, narrow.saturating_add(streams), hidden, element]);
}
