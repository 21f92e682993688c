//! Status words without a label: the output of a template, a cell of a console; and what people write in a message, which
//! is only their word for it.

use super::field::{OOM_KILLED, Word, code, word};

/// Words that only sentences have.
const SENTENCE: &[&str] = &[
    "a", "after", "again", "an", "and", "are", "at", "because", "but", "by", "can", "due", "for", "get",
    "gets", "getting", "got", "has", "have", "how", "i", "if", "in", "is", "it", "keep", "keeps", "my", "of",
    "on", "our", "see", "since", "so", "that", "the", "this", "to", "wird", "was", "we", "were", "when",
    "why", "der", "die", "das", "mein", "unser",
];
/// A sentence with one of these does not say that it happened: it denies, supposes, asks or explains.
const UNSURE: &[&str] = &[
    "not",
    "no",
    "never",
    "without",
    "isn't",
    "isnt",
    "wasn't",
    "wasnt",
    "aren't",
    "didn't",
    "doesn't",
    "don't",
    "dont",
    "neither",
    "nor",
    "none",
    "false",
    "nicht",
    "kein",
    "keine",
    "if",
    "unless",
    "whether",
    "would",
    "could",
    "might",
    "may",
    "should",
    "avoid",
    "avoids",
    "prevent",
    "prevents",
    "means",
    "mean",
    "meaning",
    "happens",
    "how",
    "what",
    "or",
    "wenn",
    "falls",
    "can",
    "probably",
    "maybe",
    "instead",
    "handle",
    "handling",
    "e.g",
    "eg",
    "example",
    "troubleshoot",
    "troubleshooting",
    "bug",
    "fix",
    "fixes",
    "fixed",
    "release",
    "feature",
];
/// A line with more words is a sentence.
const MAX_WORDS: usize = 10;

/// What the words of a line without a label say.
#[derive(Debug, PartialEq)]
pub(super) enum Loose<'a> {
    /// A status word, as a template or console prints it: a name before it, restarts, the word, a code.
    Printed { name: Option<&'a str>, restarts: Option<u64>, word: Word, code: Option<i64> },
    /// Somebody writes that this happened.
    Written(Plane),
}

/// Which plane a person's words name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::evidence) enum Plane {
    Host,
    Gpu,
}

/// Reads a line that [`super::tidy::bare`] made.
pub(super) fn loose(line: &str) -> Option<Loose<'_>> {
    let words: Vec<&str> = split(line).collect();
    let end = words.iter().position(|w| matches!(end_word(w), Some(Word::End(OOM_KILLED, _))));
    if let Some(at) = end
        && words.len() <= MAX_WORDS
        && !words.iter().any(|w| SENTENCE.iter().chain(UNSURE).any(|s| s.eq_ignore_ascii_case(w)))
        && !line.contains('?')
    {
        let found = words.get(at).and_then(|w| end_word(w))?;
        let behind = words.get(at + 1).or_else(|| words.get(at.checked_sub(1)?));
        // What a signal leaves; smaller numbers are restarts.
        let code = behind.and_then(|w| code(w)).map(|(c, _)| c).filter(|c| (126..=255).contains(c));
        let restarts = at.checked_sub(1).and_then(|i| words.get(i)?.parse().ok()).filter(|_| code.is_none());
        let name = words
            .first()
            .copied()
            .filter(|n| at > 0 && super::piece::is_name(n) && n.parse::<i64>().is_err());
        return Some(Loose::Printed {
            name: name.filter(|_| restarts.is_some()),
            restarts,
            word: found,
            code,
        });
    }
    written(line).map(Loose::Written)
}

/// Exit codes that a sentence or console puts into words: `exit code 137`, `exited with code 137`, `Exited (137)`.
pub(super) fn spoken_code(line: &str) -> Option<(i64, bool)> {
    let lower = line.to_ascii_lowercase();
    for phrase in ["exit code ", "exit code: ", "exited with code ", "exit status ", "exited ("] {
        let Some(at) = lower.find(phrase) else { continue };
        let rest = line.get(at + phrase.len()..)?;
        let number = rest.trim_start().split([' ', ')', ',', ';', '.']).next()?;
        if let Some(code) = code(number).filter(|(c, _)| (0..=255).contains(c)) {
            return Some(code);
        }
    }
    None
}

fn split(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', '=', ':', ',', '(', ')', '|', ';']).filter(|w| !w.is_empty())
}

/// The word, also where the prompt follows on its line because a template prints no line end.
fn end_word(text: &str) -> Option<Word> {
    let cut = text
        .get(..OOM_KILLED.len())
        .filter(|_| text.contains(['@', '%', '$', '#']) && text.starts_with(OOM_KILLED));
    word(cut.unwrap_or(text))
}

/// The plane that a message names in a sentence which says that it happened; `None` where it names both.
fn written(line: &str) -> Option<Plane> {
    let mut found = None;
    for sentence in sentences(line) {
        let Some(plane) = named(sentence) else { continue };
        let unsure = split(sentence)
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
            .any(|w| UNSURE.iter().any(|u| u.eq_ignore_ascii_case(w)));
        // "Why is it OOMKilled?" takes for granted that it is.
        let asks = sentence.trim_end().ends_with('?')
            && !split(sentence)
                .next()
                .is_some_and(|w| w.eq_ignore_ascii_case("why") || w.eq_ignore_ascii_case("my"))
            && !sentence.contains(", any");
        if unsure || asks || found.is_some_and(|f| f != plane) {
            return None;
        }
        found = Some(plane);
    }
    found
}

/// Sentences; a point inside of a name ends none.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let mut ends = rest.char_indices().filter(|(_, c)| matches!(c, '.' | '!' | '?' | ';'));
        let end = ends
            .find(|(i, _)| rest.get(i + 1..).is_none_or(|r| r.is_empty() || r.starts_with(' ')))
            .map_or(rest.len(), |(i, _)| i + 1);
        let (sentence, behind) = rest.split_at_checked(end)?;
        rest = behind;
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn named(sentence: &str) -> Option<Plane> {
    let lower = sentence.to_ascii_lowercase();
    let gpu = [
        "cuda out of memory",
        "cuda error: out of memory",
        "cuda oom",
        "cuda.outofmemoryerror",
        "torch.outofmemoryerror",
        "gpu out of memory",
        "out of vram",
        "hip out of memory",
    ]
    .iter()
    .any(|w| lower.contains(w));
    let host = split(sentence).any(|w| matches!(word(w), Some(Word::End(OOM_KILLED, _))))
        || ["oom killed", "oom-killed", "killed by the oom killer", "killed by the oom-killer"]
            .iter()
            .any(|w| lower.contains(w));
    match (host, gpu) {
        (true, false) => Some(Plane::Host),
        (false, true) => Some(Plane::Gpu),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_words() {
        let printed = |name, restarts, code| {
            Some(Loose::Printed { name, restarts, word: Word::End("OOMKilled", false), code })
        };
        for (line, want) in [
            ("OOMKilled", printed(None, None, None)),
            ("OOMKilled 137", printed(None, None, Some(137))),
            ("137 OOMKilled", printed(None, None, Some(137))),
            ("server 4 OOMKilled", printed(Some("server"), Some(4), None)),
            ("llm-0: vllm: OOMKilled (137)", printed(None, None, Some(137))),
            ("OOMKilleduser@box:~$", printed(None, None, None)),
            ("terminated, OOMKilled", printed(None, None, None)),
        ] {
            assert_eq!(loose(line), want, "{line}");
        }
        assert_eq!(spoken_code("llm-1 exited with code 137"), Some((137, false)));
        assert_eq!(spoken_code("Exited (137) 3 minutes ago"), Some((137, false)));
    }

    #[test]
    fn a_sentence_counts_where_it_says_that_it_happened() {
        for (line, want) in [
            ("my pod keeps getting OOMKilled, any idea?", Some(Plane::Host)),
            ("getting CUDA out of memory on my A100", Some(Plane::Gpu)),
            ("CUDA out of memory", Some(Plane::Gpu)),
            ("Why is my pod OOMKilled?", Some(Plane::Host)),
            ("How do I avoid OOMKilled?", None),
            ("the container was not OOMKilled", None),
            ("If the pod gets OOMKilled, increase the limit.", None),
            ("is this OOMKilled or a CUDA out of memory?", None),
            ("it was OOMKilled. Then CUDA out of memory.", None),
            ("milk", None),
        ] {
            assert_eq!(loose(line), want.map(Loose::Written), "{line}");
        }
    }
}
