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
