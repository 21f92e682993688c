//! What the evidence tells of a launch, as plans take it: a manifest's command, a start-up log's flags and figures.

pub mod manifest;
mod start;
pub mod startlog;

pub use start::{RefusedStart, of_start};
