//! Lines that a terminal broke at its width before they were copied: put together again, cited by their first part.
//!
//! A break is only believed where the whole text has one width: no line is longer, several are exactly as long, and what
//! stands below these nearly always goes on in the middle of a line.

use crate::evidence::paste::MAX_PASTE;
use crate::time::find_stamp;

/// Widths of terminals, in characters.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=400;
/// Full lines that show a width.
const LEAST_FULL: usize = 3;
/// A line that was put together is not longer than what a scan reads of it.
const MAX_LINE: usize = 64 << 10;

/// The text with whole lines, and the line of the original for each; `None` where nothing was broken.
pub(in crate::evidence) fn join(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u64>)> {
    if bytes.len() > MAX_PASTE {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let lines: Vec<&str> = text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
    // Nearly every log has a line that is longer than any terminal: it ends the search at once.
    if lines.iter().any(|l| l.len() > 4 * WIDTHS.end()) {
        return None;
    }
    let widths: Vec<usize> = lines.iter().map(|l| l.chars().count()).collect();
    let width = widths.iter().copied().max().filter(|w| WIDTHS.contains(w))?;
    let pairs = || lines.iter().zip(&widths).zip(lines.iter().skip(1));
    let full = pairs().filter(|((_, w), _)| **w == width).count();
    let broken = pairs().filter(|((_, w), next)| **w == width && goes_on(next)).count();
    // Two are enough where the second is the middle of a line.
    let middle = || {
        pairs()
            .zip(widths.iter().skip(1))
            .any(|(((_, w), next), n)| *w == width && *n == width && goes_on(next))
    };
    if full < LEAST_FULL && !(full == 2 && middle()) || broken * 10 < full * 9 {
        return None;
    }
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut numbers = Vec::new();
    let (mut open, mut length) = (false, 0);
    for (i, (line, w)) in lines.iter().zip(&widths).enumerate() {
        if open && goes_on(line) && length < MAX_LINE {
            length += line.len();
        } else {
            if i > 0 {
                out.push(b'\n');
            }
            numbers.push(i as u64 + 1);
            length = line.len();
        }
        out.extend_from_slice(line.as_bytes());
        open = *w == width;
    }
    Some((out, numbers))
}

/// The line does not begin like one of a log, a table, a fence or a prompt.
fn goes_on(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "INFO",
        "WARN",
        "ERROR",
        "DEBUG",
        "FATAL",
        "CRITICAL",
        "Traceback",
        "File ",
        "time=",
        "llama_",
        "ggml_",
        "srv ",
        "slot ",
        "torch.",
        "RuntimeError",
        "ValueError",
    ];
    let Some(first) = line.chars().next() else { return false };
    if matches!(first, '[' | '(' | '{' | '|' | '+' | '$' | '#' | '`' | '>' | '-' | '=' | '\t') {
        return false;
    }
    if line.starts_with("  ") || BEGINNINGS.iter().any(|b| line.starts_with(b)) {
        return false;
    }
    // A stamp at the head; one further on may be the line's own text.
    let head: String = line.chars().take(24).collect();
    !(first.is_ascii_alphanumeric() && find_stamp(&head).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[&str] = &[
        "INFO 07-03 22:39:40 [gpu_model_runner.py:2338] Starting to load model /models/a-rather-long-name-of-a-model...",
        "ERROR 07-03 22:39:58 [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 616.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 501.19 MiB is free.",
        "INFO 07-03 22:39:59 short",
    ];

    fn wrapped(width: usize) -> String {
        let piece = |l: &&str| {
            let chars: Vec<char> = l.chars().collect();
            chars.chunks(width).map(|c| c.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
        };
        LINES.iter().map(piece).collect::<Vec<_>>().join("\n") + "\n"
    }

    #[test]
    fn lines_of_a_terminal_are_whole_again() {
        for width in [60, 64, 72, 80] {
            let text = wrapped(width);
            let (joined, numbers) = join(text.as_bytes()).unwrap_or_else(|| panic!("{width}: {text}"));
            assert_eq!(String::from_utf8(joined).unwrap(), LINES.join("\n") + "\n", "{width}");
            assert_eq!(numbers[1], LINES[0].len().div_ceil(width) as u64 + 1, "{width}");
        }
    }

    #[test]
    fn ordinary_texts_stay() {
        let log = LINES.join("\n");
        let table = "| 0  A100 | 1 MiB / 2 MiB | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa |\n".repeat(9);
        let cut = "INFO 07-03 22:39:40 a message that a viewer cuts off at one width and does no\n".repeat(9);
        for text in [log.as_str(), table.as_str(), cut.as_str(), "a\nb\n", ""] {
            assert!(join(text.as_bytes()).is_none(), "{text}");
        }
    }
}
