//! Words near to one that names nothing, for the answer to a slip.

use crate::order::Order as _;
use std::cmp::Reverse;

/// Letters of a word that are looked at: the work grows with their square.
const LETTERS: usize = 64;
/// Where the words of a name part.
const BETWEEN: [char; 4] = ['-', '_', '.', ' '];

/// Letters to insert, leave out or change, of the first 64 of each.
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let head = |s: &str| s.chars().take(LETTERS).collect::<String>();
    strsim::levenshtein(&head(a), &head(b))
}

/// At most three of these names: those that share a word with it or one part of which is a slip away, the nearest first.
#[must_use]
pub fn near<'a>(word: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_ascii_lowercase();
    let parts: Vec<&str> = word.split(BETWEEN).filter(|p| p.len() > 2).collect();
    let score = |name: &'a str| {
        let whole = name.to_ascii_lowercase();
        let shared = parts.iter().filter(|p| whole.contains(**p)).count();
        let far = distance(&word, &whole);
        // A name of several words is often remembered by one of them.
        let nearest = whole.split(BETWEEN).map(|part| distance(&word, part)).min().unwrap_or(far).min(far);
        // More than a third of the letters is another word.
        let slip = nearest <= (word.chars().count() / 3).max(1);
        (shared > 0 || slip).then_some((Reverse(shared), nearest, far, name))
    };
    let mut found: Vec<_> = all.into_iter().filter_map(score).collect();
    found.order();
    found.into_iter().take(3).map(|(.., name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_or_a_shared_word_leads_to_a_name_and_anything_else_to_none() {
        let all = ["kv-cache-full", "host-memory-near-limit", "xid", "vram-high", "vllm", "sglang"];
        let of = |word: &str| near(word, all);
        assert_eq!(of("xids"), ["xid"]);
        assert_eq!(of("vlm"), ["vllm"]);
        assert_eq!(of("KV-full").first(), Some(&"kv-cache-full"));
        assert_eq!(of("host-memory"), ["host-memory-near-limit"]);
        assert_eq!(of("something"), [] as [&str; 0]);
        assert_eq!(of(""), [] as [&str; 0]);
    }

    #[test]
    fn distances_are_those_of_letters_and_long_words_cost_little() {
        assert_eq!((distance("kitten", "sitting"), distance("", "abc"), distance("é", "e")), (3, 3, 1));
        assert_eq!(distance(&"a".repeat(1 << 20), &"b".repeat(1 << 20)), LETTERS);
    }
}
