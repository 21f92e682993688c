//! Where each tensor goes: layers to cards, the rest to RAM.

use super::facts::{Facts, layer_of};
use super::gguf::Tensor;
use crate::launch::LlamaCppAsk;
use crate::outcome::TensorClass;
use dualplane_base::order::Order as _;

/// Layers of the cards, the output counted as the last.
pub(super) struct Placement {
    /// First layer on a card.
    start: u64,
    /// Layers on cards, with the output.
    on_gpu: u64,
    layers: u64,
    /// Upper ends of each card's share, as single-precision numbers: the engine compares them so.
    ends: Vec<f32>,
    experts_in_ram: u64,
}

impl Placement {
    /// `gpu_layers` layers on `cards` cards.
    ///
    /// Source: src/llama-model.cpp `load_tensors`: the output is the last layer and is the first to move to a card.
    pub(super) fn new(layers: u64, gpu_layers: u64, cards: usize, ask: &LlamaCppAsk) -> Self {
        let given = ask.tensor_split.iter().any(|s| *s > 0.0);
        let share =
            |i: usize| if given { ask.tensor_split.get(i).copied().unwrap_or(0.0) as f32 } else { 1.0 };
        let mut sum = 0.0;
        let sums: Vec<f32> = (0..cards.max(1))
            .map(|i| {
                sum += share(i);
                sum
            })
            .collect();
        Self {
            start: (layers + 1).saturating_sub(gpu_layers),
            on_gpu: gpu_layers.min(layers + 1),
            layers,
            ends: sums.into_iter().map(|s| s / sum).collect(),
            experts_in_ram: ask.experts_in_ram,
        }
    }

    /// Layers on cards, the output counted.
    pub(super) const fn offloaded(&self) -> u64 {
        self.on_gpu
    }

    /// The card of a layer; `None`: RAM. The output is the layer behind the last.
    pub(super) fn card(&self, layer: u64) -> Option<usize> {
        let nth = layer.checked_sub(self.start).filter(|n| *n < self.on_gpu)?;
        let at = nth as f32 / self.on_gpu as f32;
        let card = self.ends.iter().take_while(|end| **end <= at).count();
        Some(card.min(self.ends.len().saturating_sub(1)))
    }

    /// The card of a tensor; `None`: RAM.
    pub(super) fn card_of(&self, t: &Tensor) -> Option<usize> {
        if let Some(il) = layer_of(&t.name) {
            let stays = il < self.experts_in_ram && t.name.contains("_exps.");
            return if stays { None } else { self.card(il) };
        }
        // Looking a token up gains nothing from a card.
        let input = ["token_embd.", "position_embd.", "token_types.", "per_layer_token_embd."];
        if input.iter().any(|i| t.name.starts_with(i)) { None } else { self.card(self.layers) }
    }
}

/// Bytes in RAM and on each card.
pub(super) struct Weights {
    pub(super) cards: Vec<Vec<(TensorClass, u64)>>,
    pub(super) ram: u64,
    /// The largest matrix in RAM, which long prompts copy to a card.
    pub(super) largest_in_ram: u64,
}

pub(super) fn weights(facts: &Facts, place: &Placement, cards: usize) -> Weights {
    let mut out = Weights { cards: vec![Vec::new(); cards.max(1)], ram: 0, largest_in_ram: 0 };
    let tied = !facts.tensors.iter().any(|t| t.name == "output.weight");
    let mut put =
        |card: Option<usize>, class: TensorClass, t: &Tensor| match card.and_then(|c| out.cards.get_mut(c)) {
            Some(classes) => {
                let bytes = t.kind.on_cuda(t.shape);
                match classes.iter_mut().find(|(c, _)| *c == class) {
                    Some((_, sum)) => *sum = sum.saturating_add(bytes),
                    None => classes.push((class, bytes)),
                }
            }
            None => {
                let bytes = t.kind.stored(t.shape);
                out.ram = out.ram.saturating_add(bytes);
                if layer_of(&t.name).is_some() || t.name == "output.weight" {
                    out.largest_in_ram = out.largest_in_ram.max(bytes);
                }
            }
        };
    for t in &facts.tensors {
        put(place.card_of(t), class(&t.name), t);
        // A tied output is a second copy: on the card of the output layer, or in the order that the CPU's kernels want.
        if tied && t.name == "token_embd.weight" && (place.card(place.layers).is_some() || repacked(t)) {
            put(place.card(place.layers), TensorClass::LmHead, t);
        }
    }
    for classes in &mut out.cards {
        classes.order_by_key(|(c, _)| *c);
    }
    out
}

/// Whether matrices of this type are kept in another order in RAM (ggml/src/ggml-cpu/repack.cpp, with AVX2).
fn repacked(t: &Tensor) -> bool {
    ["q4_0", "q4_K", "q4_k", "iq4_nl", "mxfp4"].contains(&t.kind.name) && t.shape[1].is_multiple_of(8)
}

fn class(name: &str) -> TensorClass {
    let part = name.splitn(3, '.').nth(2).unwrap_or(name);
    if name.starts_with("token_embd.") || name.starts_with("per_layer_token_embd.") {
        TensorClass::Embeddings
    } else if name.starts_with("output.") {
        TensorClass::LmHead
    } else if part.contains("norm") {
        TensorClass::Norms
    } else if part.contains("exp") || part.contains("gate_inp") {
        TensorClass::Moe
    } else if part.starts_with("attn") || part.starts_with("ssm") {
        TensorClass::Attention
    } else if part.starts_with("ffn") {
        TensorClass::Mlp
    } else {
        TensorClass::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_the_last_layer_to_stay_and_the_first_to_go() {
        let place = |ngl| Placement::new(32, ngl, 1, &LlamaCppAsk::default());
        assert_eq!((place(0).card(32), place(1).card(32), place(1).card(31)), (None, Some(0), None));
        assert_eq!((place(33).card(0), place(999).offloaded()), (Some(0), 33));
    }

    #[test]
    fn shares_divide_layers() {
        let ask = LlamaCppAsk { tensor_split: vec![3.0, 1.0], ..LlamaCppAsk::default() };
        let place = Placement::new(31, 99, 2, &ask);
        let on: Vec<_> = (0..32).filter(|il| place.card(*il) == Some(0)).collect();
        assert_eq!((on.len(), on.last()), (24, Some(&23)));
    }
}
