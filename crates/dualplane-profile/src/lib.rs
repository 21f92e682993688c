//! What logs, traces and metrics of a model server tell of its requests: **lines → shape** (`dualplane.shape/v1`).
//!
//! [`Profiler`] takes a source line by line and keeps counts, never text: memory stays the same for a kilobyte and for a
//! thousand gibibytes. What a source is, is recognised by its content: `source`. `knowledge/requests.toml` holds the lines of each
//! engine. [`Profiler::shape`] makes the shape, [`draw()`] draws its two histograms.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

mod csv;
mod draw;
mod forms;
mod keys;
mod metrics;
#[cfg(test)]
mod properties;
mod shape;
mod source;
mod spans;
mod tally;
#[cfg(test)]
mod tests;
mod timeline;
mod walk;

pub use draw::draw;
pub use metrics::{Histograms, histograms};
pub use shape::{NoShape, Options};
pub use source::Profiler;
pub use tally::Seen;
