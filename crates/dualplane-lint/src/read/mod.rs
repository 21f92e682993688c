//! Text to objects: documents of a stream one after another, each parsed alone, so that a broken one costs only itself.
//!
//! Memory is bounded by one document: what is longer is skipped and said.

mod compose;
mod documents;
mod json;
mod parse;
mod triton;

pub use documents::{Document, Documents};
pub use json::{Item, items};
pub use parse::{Parsed, Problem, parse};

/// The largest document that is read. An object of etcd has at most 1.5 MiB; a list of many is written as JSON, whose items
/// are read one by one.
pub const MAX_DOCUMENT: usize = 4 << 20;

/// Parses with the bounds of untrusted text; `y` and `no` are words, as for kubectl.
pub(crate) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: 100,
            max_nodes: 400_000,
            max_events: 1_200_000,
            max_aliases: 2_000,
            max_anchors: 500,
            max_documents: 4,
        },
    }
}
