//! How a large file is read, from its first bytes.

use crate::evidence::{Kind, is_document, recognise, without_nuls};

/// What reading it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Line by line: a log, sifted.
    Lines,
    /// As a whole: objects and metrics.
    Whole,
    /// Its head says that it cannot be used.
    Head,
}

/// Decides by the name and the first 64 KiB.
#[must_use]
pub fn reading(name: &str, head: &[u8]) -> Reading {
    let mut head = head.to_vec();
    without_nuls(&mut head);
    let head = head.as_slice();
    if is_document(name, head) {
        return Reading::Whole;
    }
    match recognise(name, head) {
        Kind::Unusable(_) if !head.iter().all(u8::is_ascii_whitespace) => Reading::Head,
        Kind::Metrics => Reading::Whole,
        _ => Reading::Lines,
    }
}
