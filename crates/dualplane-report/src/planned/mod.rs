//! What the evidence tells of a launch, as plans take it: a manifest's command, a start-up log's flags and figures.

mod expected;
mod launch;
pub mod manifest;
mod start;
pub mod startlog;

pub use expected::{Expected, expect};
pub use launch::{Launched, known, of_subject};
pub use start::{RefusedStart, of_start};
