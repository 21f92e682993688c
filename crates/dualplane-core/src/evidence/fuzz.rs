//! Doors of the private parsers for `fuzz/`, behind the feature `fuzzing`.

use serde_json::Value;

use super::{
    Bundle, LogSource, describe, exports, forms, inspect, paste, prefix, promql, scrap, stream, tables, wrap,
};

/// `kubectl describe` out of a text.
pub fn describe(text: &str) -> Bundle {
    let mut bundle = Bundle::default();
    let lines: Vec<&str> = text.lines().collect();
    let taken = describe::read(&mut bundle, &lines, 1, "f");
    assert!(taken.iter().all(|(a, b)| a <= b && *b <= lines.len()), "{taken:?}");
    bundle
}

/// Tables of `kubectl get` out of a text.
pub fn tables(text: &str) -> Bundle {
    let mut bundle = Bundle::default();
    let lines: Vec<&str> = text.lines().collect();
    let taken = tables::read(&mut bundle, &lines, 1, "f");
    assert!(taken.iter().all(|(a, b)| a <= b && *b <= lines.len()), "{taken:?}");
    bundle
}

/// `crictl inspect`, `docker inspect`.
pub fn inspect(text: &str) -> usize {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return 0 };
    if inspect::is_inspect(&value) { inspect::pods(&value, "f").len() } else { 0 }
}

/// Exports of log stores: one line number a line of text.
pub fn exports(text: &str) -> usize {
    let export = match serde_json::from_str::<Value>(text) {
        Ok(value) => exports::read(&value, text),
        Err(_) => exports::read_lines(text),
    };
    export.map_or(0, |e| {
        assert_eq!(e.numbers.len(), e.text.lines().count(), "a number a line");
        e.numbers.len()
    })
}

/// Objects between other text, and a paste of several kinds.
pub fn paste(bytes: &[u8]) -> usize {
    let mut bundle = Bundle::default();
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    // As a whole, and as what a template printed.
    for command in [None, Some("kubectl get pod p -o jsonpath='{.x.reason} {.x.exitCode}'")] {
        let taken = scrap::read(&mut Bundle::default(), &lines, 1, "f", command, false);
        assert!(taken.iter().all(|(a, b)| a < b && *b <= lines.len()), "{taken:?}");
    }
    let found = stream::read(&text).objects.len();
    found + paste::read(&mut bundle, "f", bytes.to_vec(), false).len()
}

/// What tools put before lines, and each line without it.
pub fn unwrap(bytes: &[u8], kernel: bool) -> usize {
    let log = LogSource { name: "f".into(), kernel, prefix: prefix::of(bytes), ..LogSource::default() };
    let text = String::from_utf8_lossy(bytes);
    text.split('\n').map(|line| prefix::unwrap(&log, line).text.len()).sum()
}

/// Printouts of GPU and host tools out of a text.
pub fn printouts(text: &str) -> Bundle {
    let mut bundle = Bundle::default();
    let lines: Vec<&str> = text.lines().collect();
    let (command, body) = match lines.split_first() {
        Some((first, body)) if first.starts_with("nvidia-smi") => (Some(*first), body),
        _ => (None, lines.as_slice()),
    };
    let taken = forms::read(&mut bundle, body, 1, "f", command);
    assert!(taken.iter().all(|(a, b)| a < b && *b <= body.len()), "{taken:?}");
    bundle
}

/// Answers of the Prometheus HTTP API.
pub fn series(text: &str) -> usize {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return 0 };
    if promql::is_answer(&value) { promql::read(&value, text, "f").samples.len() } else { 0 }
}

/// Lines that a terminal broke: one line number a line, and nothing but line ends is lost.
pub fn wrapped(bytes: &[u8]) -> bool {
    let Some((joined, numbers)) = wrap::join(bytes) else { return false };
    assert_eq!(numbers.len(), joined.split(|b| *b == b'\n').count(), "a number a line");
    true
}
