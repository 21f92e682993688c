//! The compute buffer of a card, and what CUDA takes beside the buffers.

use super::facts::Facts;
use super::kv::Cells;
use crate::arith::mul;
use crate::launch::LlamaCppAsk;
use crate::quantity::Quantity;
use dualplane_base::units::MIB;

pub(super) const SOURCE: &str = "fitted to printed compute buffers (logdetective#106, llamafile#552, LLamaSharp#1099): equal to 0.01 MiB there";

/// Context, cuBLAS workspace and pools; not printed by the engine.
pub(super) const fn context() -> Quantity {
    Quantity { low: 200 * MIB, expected: 450 * MIB, high: 900 * MIB }
}

/// A compute buffer and how it came about.
#[derive(Default)]
pub(super) struct Buffer {
    pub(super) quantity: Quantity,
    pub(super) formula: String,
}

/// The same where logits are reserved for one token of each slot, as the server does since llama.cpp#23861 (June 2026): the
/// mask in 16 bits and the widest step, as `dualplane dev llama` compares it with what the library itself simulates.
fn least(facts: &Facts, cells: &Cells, without: bool) -> u64 {
    let (h, ff) = (facts.hidden, facts.feed_forward);
    if without {
        return mul([cells.full, facts.heads.saturating_add(1)]).saturating_add(mul([5, h]));
    }
    let gated = facts.tensors.iter().any(|t| t.name.contains("ffn_gate"));
    let wide = if !gated {
        1
    } else if ff > h {
        3
    } else {
        2
    };
    let network = mul([wide, ff]).saturating_add(mul([3, h]));
    (cells.full / 2).saturating_add(network.max(mul([4, h])))
}

/// The largest step of the graph for one physical batch, in 32-bit numbers: logits, attention or feed-forward.
pub(super) fn buffer(
    facts: &Facts,
    ask: &LlamaCppAsk,
    cells: &Cells,
    cards: usize,
    largest_in_ram: u64,
    on_card: bool,
) -> Buffer {
    let logits = facts.vocab.saturating_add(facts.hidden);
    let dense = mul([4, facts.hidden]).saturating_add(mul([2, facts.feed_forward]));
    // Without flash attention the scores of all heads over all cells stand in memory, with their mask.
    let scores = mul([cells.full, facts.heads.saturating_add(1)]).saturating_add(mul([4, facts.hidden]));
    let without = ask.flash_attention == Some(false);
    let least = least(facts, cells, without);
    let (numbers, what) = [
        (logits, format!("logits: vocabulary {} + hidden {}", facts.vocab, facts.hidden)),
        (dense, format!("feed-forward: 4 × {} + 2 × {}", facts.hidden, facts.feed_forward)),
        (
            if without { scores } else { 0 },
            format!("scores: {} cells × ({} heads + 1) + 4 × {}", cells.full, facts.heads, facts.hidden),
        ),
    ]
    .into_iter()
    .max_by_key(|(n, _)| *n)
    .unwrap_or_default();
    let expected = mul([cells.ubatch, 4, numbers]);
    // Several cards work on several batches at once and keep copies of their inputs; a card without the output has no
    // logits. Long prompts copy a matrix from RAM to the card.
    let least = mul([cells.ubatch, 4, least]);
    // Without layers of its own a card has the step of the output only, if that.
    let low = if on_card { least.min(expected) / if cards > 1 { 3 } else { 2 } } else { 0 };
    let high = if cards > 1 { expected.saturating_mul(2) } else { expected / 4 * 5 };
    let high = high.max(least / 4 * 5).saturating_add(MIB * 32).saturating_add(largest_in_ram);
    Buffer {
        quantity: Quantity::band(low, expected, high),
        formula: format!("{} tokens × 4 B × ({what})", cells.ubatch),
    }
}
