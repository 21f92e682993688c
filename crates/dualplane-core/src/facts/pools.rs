//! Whether the GPU has memory of its own: by the card's name, or by what an engine prints of it.

use super::{Facts, Place};
use crate::evidence::Bundle;
use crate::knowledge::Knowledge;

/// Machines whose two planes are not two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pools {
    /// One pool: what the GPU takes, the processor lacks.
    One,
    /// Two pools, of which the kernel may use both.
    Coherent,
}

/// How that is known.
#[derive(Debug, Clone)]
pub struct MemoryPools {
    /// Which.
    pub pools: Pools,
    /// The card.
    pub card: String,
    /// Where it is named.
    pub place: Place,
}

/// What all named cards have in common; of different ones nothing tells which is ours.
pub(super) fn pools(bundle: &Bundle, facts: &Facts, knowledge: &Knowledge) -> Option<MemoryPools> {
    let mut found: Option<MemoryPools> = None;
    for (name, place) in names(bundle) {
        let of = |card: &str| {
            let gpu = knowledge.gpu(card)?;
            let one = gpu.unified_memory.then_some(Pools::One);
            one.or_else(|| gpu.coherent_memory.then_some(Pools::Coherent))
        };
        let Some(pools) = of(&name) else { return said(facts) };
        match &found {
            Some(f) if f.pools != pools => return None,
            Some(_) => {}
            None => found = Some(MemoryPools { pools, card: name, place }),
        }
    }
    found.or_else(|| said(facts))
}

/// Product names, as node labels, metrics and tools tell them.
fn names(bundle: &Bundle) -> impl Iterator<Item = (String, Place)> {
    let labels = bundle.nodes.iter().flat_map(|n| {
        let product = n.labels.iter().find(|(k, _)| k == "nvidia.com/gpu.product");
        product.map(|(_, v)| (v.clone(), Place { file: n.name.clone(), line: None }))
    });
    let metrics = bundle.metrics.iter().filter_map(|s| {
        Some((s.label("modelName")?.to_owned(), Place { file: s.file.clone(), line: Some(s.line) }))
    });
    let tools = bundle.gpus.iter().flat_map(|s| {
        let named = s.gpus.iter().filter_map(move |g| Some((g.name.clone()?, g.line)));
        named.map(|(name, line)| (name, Place { file: s.file.clone(), line: Some(line) }))
    });
    labels.chain(metrics).chain(tools)
}

/// An engine that prints of its card that it has no memory of its own: those messages' ids have this ending.
fn said(facts: &Facts) -> Option<MemoryPools> {
    let hit = facts.hits.iter().find(|h| h.id.ends_with(".one_pool"))?;
    let card = hit.word("card").unwrap_or_else(|| "the GPU".to_owned());
    Some(MemoryPools { pools: Pools::One, card, place: hit.place.clone() })
}
