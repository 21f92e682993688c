//! Lines that speak of an error: a warning of what may come, or advice against it. The error did not happen there.
//!
//! vLLM warns at each start that few file descriptors "can cause fd limit errors like `OSError: [Errno 24] …`". What
//! stands behind such words in the same sentence is no evidence of an end.

/// Words after which an error is only spoken of.
const SPEAKS: &[&str] = &[
    "can cause",
    "could cause",
    "may cause",
    "might cause",
    "will cause",
    "can lead to",
    "could lead to",
    "may lead to",
    "might lead to",
    "can result in",
    "could result in",
    "may result in",
    "might result in",
    "errors like",
    "error like",
    "errors such as",
    "error such as",
    "if you see",
    "if you get",
    "if you encounter",
    "if you run into",
    "in case of",
    "to avoid",
    "to prevent",
    "risk of",
];
/// So far before an error its sentence is read.
const REACH: usize = 160;

/// Whether the error that begins at this byte of the line is only spoken of.
pub(super) fn is_spoken_of(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let from = before.len().saturating_sub(REACH);
    let near = (from..=before.len()).find_map(|i| before.get(i..)).unwrap_or_default();
    // The sentence ends at a full stop, at a bar of a table, or where a message in quotes begins anew.
    let sentence = near.rfind(". ").map_or(near, |i| near.get(i + 2..).unwrap_or_default());
    let bytes = sentence.as_bytes();
    SPEAKS.iter().any(|w| bytes.windows(w.len()).any(|b| b.eq_ignore_ascii_case(w.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::is_spoken_of;

    fn spoken(line: &str, error: &str) -> bool {
        is_spoken_of(line, line.find(error).unwrap())
    }

    #[test]
    fn a_warning_is_not_the_error() {
        for (line, error) in [
            (
                "WARNING 11-20 [utils.py:33] Found ulimit of 1024 and failed to automatically increase with error x. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n",
                "Too many open files",
            ),
            ("WARN: a large batch may lead to CUDA out of memory", "CUDA out of memory"),
            ("INFO Set expandable_segments:True to avoid CUDA out of memory", "CUDA out of memory"),
        ] {
            assert!(spoken(line, error), "{line}");
        }
    }

    #[test]
    fn the_error_itself_is() {
        for (line, error) in [
            ("OSError: [Errno 24] Too many open files", "Too many open files"),
            (
                "WARNING it may cause trouble. RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
                "CUDA out of memory",
            ),
            (
                "torch.OutOfMemoryError: CUDA out of memory. If reserved memory is large set x to avoid fragmentation",
                "CUDA out of memory",
            ),
        ] {
            assert!(!spoken(line, error), "{line}");
        }
    }
}
