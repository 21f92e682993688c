//! How long steps take: by what a running server printed, or, roughly, by what the card's maker says.

use serde::Deserialize;

use crate::clock::StepTime;

/// What engines reach of a card's memory and arithmetic in practice, and what a step costs beside the card: the scheduler,
/// launches of kernels, sampling. Rough on purpose; the answers are given for half and twice the time too.
const OF_MEMORY: f64 = 0.7;
const OF_ARITHMETIC: f64 = 0.45;
const BESIDE: f64 = 0.002;

#[derive(Debug, Deserialize)]
struct Table {
    pace: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Part {
    cards: Vec<Card>,
}

/// A card's speed as its maker gives it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Card {
    card: String,
    /// GB/s.
    memory: f64,
    /// TFLOPS.
    arithmetic: f64,
}

/// The card of this name, by the longest beginning that is known.
#[must_use]
pub fn card(name: &str) -> Option<Card> {
    let table: Table = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/pace.json"))).ok()?;
    let all = table.pace.into_iter().flat_map(|p| p.cards);
    all.filter(|c| begins(name, &c.card)).max_by_key(|c| c.card.len())
}

/// `H100-80GB` begins with `H100`, `L40S` not with `L40`.
fn begins(name: &str, card: &str) -> bool {
    let rest = name.strip_prefix(card);
    rest.is_some_and(|r| r.is_empty() || !r.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Steps of weights and a cache of so many bytes (of one GPU), on a whole card.
#[must_use]
pub fn estimate(card: &Card, weights: u64, bytes_per_token: u64) -> StepTime {
    let memory = card.memory * 1e9 * OF_MEMORY;
    StepTime {
        base: BESIDE + weights as f64 / memory,
        // Two operations a weight, of two bytes.
        token: weights as f64 / (card.arithmetic * 1e12 * OF_ARITHMETIC),
        request: 0.0,
        context: bytes_per_token as f64 / memory,
    }
}

/// One line of vLLM's statistics: means over ten seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Tokens of prompts a second.
    pub prompt: f64,
    /// Tokens of answers a second.
    pub answer: f64,
    /// Requests that ran.
    pub running: f64,
}

/// The statistics of a log: `Avg prompt throughput: 12.3 tokens/s, Avg generation throughput: 456.7 tokens/s, Running: 8 reqs`.
#[must_use]
pub fn seen(log: &str) -> Vec<Seen> {
    let number = |line: &str, label: &str| {
        let rest = line.split(label).nth(1)?.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest.get(..end)?.parse::<f64>().ok().filter(|x| x.is_finite())
    };
    let line = |l: &str| {
        Some(Seen {
            prompt: number(l, "prompt throughput:")?,
            answer: number(l, "generation throughput:")?,
            running: number(l, "Running:")?,
        })
    };
    log.lines().filter_map(line).collect()
}

/// The time of a step by the statistics of a server that was busy; `None` where they are too few.
///
/// In a second every running request gets a token a step, so `answer / running` steps were made; they took a second: that is an
/// equation with three unknowns, and the lines give many. Solved by least squares under the condition that no cost is negative.
#[must_use]
pub fn measured(lines: &[Seen]) -> Option<StepTime> {
    // In the first and last ten seconds of traffic the engine was idle in part.
    let busy = |w: &[Seen]| w.iter().all(|s| s.running >= 1.0 && s.answer > 0.0);
    let rows: Vec<[f64; 3]> = lines
        .windows(3)
        .filter(|w| busy(w))
        .filter_map(|w| w.get(1))
        .map(|s| [s.answer / s.running, s.answer, s.prompt + s.answer])
        .collect();
    if rows.len() < 3 {
        return None;
    }
    let [base, request, token] = least_squares(&rows);
    let found = StepTime { base, token, request, context: 0.0 };
    (found.is_sound() && base + request > 0.0).then_some(found)
}

/// Non-negative x with `row · x` near 1 for all rows, by turns over its parts.
fn least_squares(rows: &[[f64; 3]]) -> [f64; 3] {
    // Parts of very different size: each is measured by its own.
    let scale: [f64; 3] = std::array::from_fn(|i| {
        rows.iter().filter_map(|r| r.get(i)).map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE)
    });
    let dot = |a: usize, b: usize| -> f64 {
        let at = |r: &[f64; 3], i: usize| r.get(i).copied().unwrap_or(0.0);
        let s = |i: usize| scale.get(i).copied().unwrap_or(1.0);
        rows.iter().map(|r| at(r, a) / s(a) * at(r, b) / s(b)).sum()
    };
    let gram: [[f64; 3]; 3] = std::array::from_fn(|a| std::array::from_fn(|b| dot(a, b)));
    let right: [f64; 3] = std::array::from_fn(|i| {
        rows.iter().filter_map(|r| r.get(i)).sum::<f64>() / scale.get(i).copied().unwrap_or(1.0)
    });
    let mut x = [0.0_f64; 3];
    for _ in 0..20_000 {
        for i in 0..3 {
            let row = gram.get(i).copied().unwrap_or_default();
            let others: f64 =
                row.iter().zip(&x).enumerate().filter(|(j, _)| *j != i).map(|(_, (g, v))| g * v).sum();
            let own = row.get(i).copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
            if let (Some(v), Some(r)) = (x.get_mut(i), right.get(i)) {
                *v = ((r - others) / own).max(0.0);
            }
        }
    }
    std::array::from_fn(|i| x.get(i).copied().unwrap_or(0.0) / scale.get(i).copied().unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_known_by_the_beginning_of_their_names() {
        assert_eq!(card("H100-80GB").unwrap().memory as u64, 3350);
        assert_eq!(card("H100-NVL").unwrap().memory as u64, 3900);
        assert_eq!(card("A100-40GB").unwrap().memory as u64, 1555);
        assert_eq!(card("L40S").unwrap().arithmetic as u64, 362);
        assert!(card("L400").is_none() && card("Gaudi-3").is_none());
    }

    #[test]
    fn a_step_of_a_large_model_reads_its_weights() {
        let t = estimate(&card("H100-80GB").unwrap(), 16_000_000_000, 131_072);
        assert!((0.007..0.012).contains(&t.base) && t.token < 1e-4 && t.is_sound(), "{t:?}");
    }

    #[test]
    fn the_statistics_of_a_log_give_the_time_of_a_step() {
        let truth = StepTime { base: 0.02, token: 4e-5, request: 2e-4, context: 0.0 };
        let mut log = String::from(
            "INFO Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%\n",
        );
        for (running, prompts) in
            [(4.0, 0.0), (8.0, 400.0), (32.0, 900.0), (16.0, 3000.0), (64.0, 200.0), (2.0, 50.0)]
        {
            // As many steps as a second has room for.
            let steps =
                (1.0 - prompts * truth.token) / (truth.base + running * (truth.request + truth.token));
            log += &format!(
                "INFO 06-18 [loggers.py:1] Engine 000: Avg prompt throughput: {prompts:.1} tokens/s, Avg generation throughput: {:.1} tokens/s, Running: {running} reqs, Waiting: 0 reqs\n",
                steps * running
            );
        }
        log += log.clone().lines().next().unwrap();
        let lines = seen(&log);
        assert_eq!(lines.len(), 8);
        let found = measured(&lines).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 0.1 * b;
        assert!(near(found.base, truth.base) && near(found.token, truth.token), "{found:?}");
        assert!(measured(&lines[..2]).is_none());
    }
}
