//! Words of a line, with identifiers taken apart: `cudaMallocHost`, `VK_ERROR_OUT_OF_DEVICE_MEMORY` and "out of device
//! memory" consist of the same words.

use super::lexicon::{FAIL, NOT, Roles, roles};

/// As much of a line is read: what an error is stands at its beginning.
const MAX_BYTES: usize = 1024;
const MAX_WORDS: usize = 200;

/// A word, or a run of digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) roles: Roles,
    pub(super) at: usize,
    pub(super) end: usize,
    /// Part of the same name as the word before.
    pub(super) joined: bool,
    /// Which sentence of the line.
    pub(super) sentence: u16,
    /// A colon or a bracket parts it from the word before.
    pub(super) parted: bool,
    /// Part of a name with hyphens, as machines have: `gpu-node-1`.
    pub(super) hyphened: bool,
}

/// The words of a line.
pub(super) fn lex(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..bytes.len().min(MAX_BYTES)).unwrap_or(bytes);
    let mut tokens: Vec<Token> = Vec::new();
    let mut sentence = 0;
    let mut at = 0;
    while let Some(first) = bytes.get(at).copied() {
        if !first.is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        // An address is no sentence.
        if rest.starts_with(b"http") && rest.get(..8).is_some_and(|b| b.windows(3).any(|w| w == b"://")) {
            at += rest.iter().take_while(|b| !b.is_ascii_whitespace()).count();
            continue;
        }
        let end = at + name_len(text, at, rest);
        let gap = tokens.last().map_or(&b" "[..], |t| bytes.get(t.end..at).unwrap_or_default());
        if ends_sentence(gap) {
            sentence += 1;
        }
        let joined = gap.iter().all(|b| matches!(b, b'_' | b'.' | b':'));
        let rest = bytes.get(end..).unwrap_or_default();
        let word = text.get(at..end).unwrap_or_default();
        // "can't" is "cannot".
        let refuses = word.eq_ignore_ascii_case("can") && rest.starts_with(b"'t")
            || word.eq_ignore_ascii_case("not") && tokens.last().is_some_and(|t| may(text, t));
        let roles = if refuses { NOT | FAIL } else { roles(word) };
        let parted = gap.windows(2).any(|w| w == b": ");
        let hyphened = rest.starts_with(b"-") && word.bytes().all(|b| b.is_ascii_lowercase());
        tokens.push(Token { roles, at, end, joined, sentence, parted, hyphened });
        if tokens.len() == MAX_WORDS {
            break;
        }
        at = end;
    }
    tokens
}

/// "can not" and "could not" say what "cannot" says.
fn may(text: &str, before: &Token) -> bool {
    let word = text.get(before.at..before.end).unwrap_or_default();
    ["can", "could"].iter().any(|w| w.eq_ignore_ascii_case(word))
}

/// A name that is known as a whole (`OpenCL`, `rocBLAS`), else its first word.
fn name_len(text: &str, at: usize, rest: &[u8]) -> usize {
    let first = word_len(rest);
    let whole = rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let known = whole > first && text.get(at..at + whole).is_some_and(|word| roles(word) != 0);
    if known { whole } else { first }
}

/// Up to a change of case or from letters to digits: `OutOfMemory`, `CUDAError`, `8GB`.
fn word_len(rest: &[u8]) -> usize {
    let is = |i: usize, f: fn(&u8) -> bool| rest.get(i).is_some_and(f);
    if is(0, u8::is_ascii_digit) {
        let number = rest.iter().take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b',')).count();
        // A full stop behind a number ends the sentence.
        let trailing = rest.get(..number).unwrap_or_default().iter().rev();
        return number - trailing.take_while(|b| !b.is_ascii_digit()).count();
    }
    let mut i = 1;
    if is(1, u8::is_ascii_uppercase) {
        while is(i, u8::is_ascii_uppercase) && !is(i + 1, u8::is_ascii_lowercase) {
            i += 1;
        }
        // ROCm, GPUs: one small letter behind capitals belongs to them.
        if is(i, u8::is_ascii_uppercase)
            && is(i + 1, u8::is_ascii_lowercase)
            && !is(i + 2, u8::is_ascii_alphabetic)
        {
            return i + 2;
        }
        // GiB, MiB: a unit and no two words.
        if i > 1 {
            return i;
        }
    }
    while is(i, u8::is_ascii_lowercase) {
        i += 1;
    }
    let unit = i == 2 && is(1, |b| *b == b'i') && is(2, |b| *b == b'B') && !is(3, u8::is_ascii_alphanumeric);
    if unit { 3 } else { i }
}

fn ends_sentence(gap: &[u8]) -> bool {
    let mut pairs = gap.iter().zip(gap.iter().skip(1));
    pairs.any(|(a, b)| matches!(a, b'.' | b'!' | b'?' | b';') && b.is_ascii_whitespace())
        || gap.iter().any(|b| matches!(b, b'\n' | b'|'))
}

#[cfg(test)]
mod tests {
    use super::lex;

    fn words(text: &str) -> Vec<&str> {
        lex(text).iter().map(|t| text.get(t.at..t.end).unwrap()).collect()
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(words("cudaMallocHost failed"), ["cuda", "Malloc", "Host", "failed"]);
        assert_eq!(words("VK_ERROR_OUT_OF_HOST_MEMORY"), ["VK", "ERROR", "OUT", "OF", "HOST", "MEMORY"]);
        assert_eq!(words("ErrorOutOfDeviceMemory"), ["Error", "Out", "Of", "Device", "Memory"]);
        assert_eq!(words("OOMKilled, 1.5GiB on cuda:0."), ["OOM", "Killed", "1.5", "GiB", "on", "cuda", "0"]);
        assert_eq!(words("ROCm, GPUs"), ["ROCm", "GPUs"]);
        assert_eq!(words("couldn't"), ["couldn", "t"]);
    }

    #[test]
    fn sentences_and_names_end() {
        let of = |text: &str| lex(text).iter().map(|t| (t.sentence, t.joined)).collect::<Vec<_>>();
        assert_eq!(of("a.B: c. d"), [(0, false), (0, true), (0, false), (1, false)]);
    }
}
