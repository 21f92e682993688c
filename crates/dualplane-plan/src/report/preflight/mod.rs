//! Checks before a start as people and programs read them.

mod json;
mod text;

pub use json::{PREFLIGHT, json};
pub use text::text;

use crate::preflight::Outcome;

/// `go`, `wait`, `cannot fit`, `unknown`.
#[must_use]
pub const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Go => "go",
        Outcome::Wait => "wait",
        Outcome::Unknown => "unknown",
        Outcome::CannotFit => "cannot fit",
    }
}
