//! A run of a model server: **samples of both planes + requests → `dualplane.measure/v1` → text, Markdown, HTML**.
//!
//! [`Gather`] takes samples and requests as they come and keeps counts of bounded size; [`tools`] reads what load tools of
//! others write; [`render`] shows a document to people. Nothing here reads a clock, a file or the network.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod gather;
mod histo;
#[cfg(test)]
mod properties;
pub mod render;
mod sample;
mod thin;
pub mod tools;

pub use gather::{Gather, Setup};
pub use histo::Histo;
pub use sample::{Faults, Host, Outcome, Process, Sample, State};
