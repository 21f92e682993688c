//! Prompts of a wanted length: words by chance, and how many tokens a word has with this server.

use std::time::Instant;

use dualplane_runs::State;
use dualplane_shape::{Random, Request};

use crate::client::{Ask, Target};

/// Short words that most tokenizers have whole.
const WORDS: [&str; 64] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school",
    "state", "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week",
    "company", "system", "program", "question", "work", "number", "night", "point", "home", "water", "room",
    "mother", "area", "money", "story", "fact", "month", "lot", "right", "study", "book", "eye", "job",
    "word", "business", "issue", "side", "kind", "head", "house", "service", "friend", "father", "power",
    "hour", "game", "line", "end", "member", "law", "car",
];

/// Tokens of a prompt: `fixed + per_word × words`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Of the chat template, or the first token.
    pub fixed: f64,
    /// Of a word.
    pub per_word: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { fixed: 0.0, per_word: 1.0 }
    }
}

/// Asks the server how many tokens it counts of two prompts.
///
/// # Errors
/// Why it did not answer.
pub async fn calibrate(target: &Target, clock: Instant) -> Result<Option<Calibration>, String> {
    let mut counted = Vec::new();
    for words in [40_u64, 240] {
        let mut prompt = String::new();
        fill(&mut prompt, &mut Random::new(words), words);
        let ask = Ask { prompt, input: words, output: 1, cancel_after: None };
        let (outcome, usage) = target.send(&ask, 0.0, clock).await;
        match outcome.state {
            State::Done => {}
            State::Status(status) => {
                return Err(format!("it answered the first request with HTTP status {status}"));
            }
            State::Failed(why) => return Err(why.to_owned()),
            State::Cancelled | State::Open => return Err("the first request got no answer".into()),
        }
        counted.push((words as f64, usage.map(|u| u.prompt_tokens as f64)));
    }
    let [(a, Some(x)), (b, Some(y))] = counted.as_slice() else { return Ok(None) };
    let per_word = (y - x) / (b - a);
    Ok((per_word > 0.05).then_some(Calibration { fixed: (x - per_word * a).max(0.0), per_word }))
}

fn fill(out: &mut String, random: &mut Random, words: u64) {
    for _ in 0..words {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(WORDS.get(random.below(WORDS.len() as u64) as usize).copied().unwrap_or("time"));
    }
}

/// The prompt of a request: the beginning that it shares with others, and words of its own.
pub(crate) fn of(request: &Request, seed: u64, c: Calibration) -> String {
    let words =
        |tokens: u64| ((tokens as f64 - c.fixed).max(c.per_word) / c.per_word).round().max(1.0) as u64;
    let all = words(request.input);
    let shared = ((request.prefix_tokens as f64 / c.per_word).round() as u64).min(all);
    let mut out = String::with_capacity(all as usize * 6);
    fill(&mut out, &mut Random::new(0x5EED_0000 ^ request.prefix), shared);
    fill(&mut out, &mut Random::new(seed).part(request.index.wrapping_add(1_000)), all - shared);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_have_their_words_and_share_their_beginning() {
        let r = |index, prefix| Request {
            index,
            at: 0.0,
            input: 120,
            output: 1,
            prefix,
            prefix_tokens: 60,
            cancel_after: None,
            tenant: 0,
        };
        let c = Calibration { fixed: 20.0, per_word: 2.0 };
        let (a, b, other) = (of(&r(1, 7), 5, c), of(&r(2, 7), 5, c), of(&r(1, 8), 5, c));
        let words = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&a).len(), 50);
        assert_eq!(words(&a)[..30], words(&b)[..30]);
        assert_ne!(words(&a)[30..], words(&b)[30..]);
        assert_ne!(words(&a)[..30], words(&other)[..30]);
        assert_eq!(a, of(&r(1, 7), 5, c));
    }
}
