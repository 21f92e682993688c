//! Which cards hold a launch, and how many of each.

use serde::Serialize;

use crate::answer::{Answer, Named, answer};
use crate::card::{Placed, place_roughly};
use crate::launch::CommandLine;
use crate::outcome::{PlanError, Verdict};
use crate::quantity::Quantity;
use crate::version::EngineKind;
use dualplane_base::gpu::Gpu as Card;
use dualplane_base::order::Order as _;

/// Numbers of cards that are tried: those of one machine.
const COUNTS: [u64; 4] = [1, 2, 4, 8];

/// One card, with the least number of it that holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// Catalogue id.
    pub gpu: String,
    /// How many.
    pub count: u64,
    /// Whether that many hold: at every plausible value, or at some.
    pub verdict: Verdict,
    /// Weights of one card, in bytes.
    pub weights_bytes: u64,
    /// Tokens of the cache, with its bounds.
    pub tokens: Quantity,
    /// Requests of the full length at once, in hundredths.
    pub concurrency_hundredths: Quantity,
    /// Memory of all of them, in bytes.
    pub rented_bytes: u64,
    /// Of all of them for an hour, where prices were given.
    pub price: Option<f64>,
}

/// Cards that hold the launch, and those that do not with as many as one machine has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choices {
    /// The cheapest first, or without prices the one with the least memory.
    pub hold: Vec<Choice>,
    /// Those that never do.
    pub never: Vec<String>,
}

/// Tries all cards of a catalogue whose size is known; `price` is of one card for an hour.
///
/// # Errors
/// [`PlanError::Unsupported`] where the plan of this engine or model is not known on any card.
pub fn choices(
    named: &Named,
    line: &CommandLine,
    cards: &[Card],
    price: &dyn Fn(&str) -> Option<f64>,
) -> Result<Choices, PlanError> {
    let mut out = Choices::default();
    let mut failed = None;
    for card in cards.iter().filter(|c| c.total_mib.is_some()) {
        let Ok(placed) = place_roughly(cards, Some(&card.id), None) else { continue };
        let mut best: Option<Choice> = None;
        let mut planned = false;
        for count in counts(line, card.unified_memory) {
            match at(named, line, &placed, count) {
                Ok(a) => {
                    planned = true;
                    let verdict = a.verdict();
                    if verdict == Verdict::Refused {
                        continue;
                    }
                    if verdict == Verdict::Fits || best.is_none() {
                        best = choice(&a, card, count, price(&card.id));
                    }
                    if verdict == Verdict::Fits {
                        break;
                    }
                }
                Err(e) => {
                    failed.get_or_insert(e);
                }
            }
        }
        match best {
            Some(b) => out.hold.push(b),
            None if planned => out.never.push(card.id.clone()),
            None => {}
        }
    }
    if let (true, true, Some(e)) = (out.hold.is_empty(), out.never.is_empty(), failed) {
        return Err(e);
    }
    out.hold.order_by(|a, b| {
        let unsure = |c: &Choice| c.verdict != Verdict::Fits;
        let price = |c: &Choice| c.price.unwrap_or(f64::INFINITY);
        unsure(a)
            .cmp(&unsure(b))
            .then(price(a).total_cmp(&price(b)))
            .then(a.rented_bytes.cmp(&b.rented_bytes))
            .then(a.gpu.cmp(&b.gpu))
    });
    Ok(out)
}

/// The ranks that the command names; without any, those of one machine, which has one card where both share a pool.
fn counts(line: &CommandLine, shared: bool) -> Vec<u64> {
    let l = &line.launch;
    if shared && l.gpus() <= 1 {
        return vec![1];
    }
    if l.gpus() > 1 || l.engine == EngineKind::LlamaCpp { vec![l.gpus().max(1)] } else { COUNTS.to_vec() }
}

fn at(named: &Named, line: &CommandLine, placed: &Placed, count: u64) -> Result<Answer, PlanError> {
    let mut line = line.clone();
    if line.launch.gpus() == 1 {
        line.launch.tp = count;
    }
    let a = answer(named, &line, placed, None)?;
    match &a.plan {
        Ok(_) => Ok(a),
        Err(e) => Err(e.clone()),
    }
}

fn choice(a: &Answer, card: &Card, count: u64, price: Option<f64>) -> Option<Choice> {
    let g = &a.plan.as_ref().ok()?.gpu;
    Some(Choice {
        gpu: card.id.clone(),
        count,
        verdict: a.verdict(),
        weights_bytes: g.weights_bytes.expected,
        tokens: g.kv_cache.tokens,
        concurrency_hundredths: g.kv_cache.max_concurrency_hundredths,
        rented_bytes: g.total_bytes.saturating_mul(count),
        price: price.map(|p| p * count as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Checkpoint;
    use crate::model::{Model, ModelFiles};

    #[test]
    fn the_least_number_of_each_card_and_the_cheapest_first() {
        let e = crate::catalogue::find("llama3.1:70b").unwrap();
        let model = Model::read(&ModelFiles { config: e.config(), ..ModelFiles::default() }).unwrap();
        let named =
            Named { id: e.id.into(), source: String::new(), model, gguf: None, files: Checkpoint::default() };
        let line = crate::cli::parse(&["vllm serve m --max-model-len 16384".to_owned()], &[], None).unwrap();
        let cards = crate::card::embedded().unwrap();
        let free = |_: &str| None;
        let all = choices(&named, &line, &cards, &free).unwrap();
        let of = |id: &str| all.hold.iter().find(|c| c.gpu == id).map(|c| (c.count, c.verdict));
        assert_eq!(of("H100-80GB"), Some((4, Verdict::Fits)));
        assert_eq!(of("B200"), Some((1, Verdict::Fits)));
        assert_eq!(of("T4"), None);
        assert!(all.never.iter().any(|c| c == "T4"));
        assert!(all.hold.iter().filter(|c| c.verdict == Verdict::Fits).is_sorted_by_key(|c| c.rented_bytes));
        let price = |id: &str| match id {
            "B200" => Some(9.0),
            "H100-80GB" => Some(2.0),
            _ => None,
        };
        let priced = choices(&named, &line, &cards, &price).unwrap();
        assert_eq!((priced.hold[0].gpu.as_str(), priced.hold[0].price), ("H100-80GB", Some(8.0)));
    }
}
