//! A rehearsal: **requests + plan → what the KV cache would have held, who would have waited, who would have been preempted**.
//!
//! [`Settings`] say what of a launch decides how requests are scheduled, [`Request`]s come at their times, [`StepTime`] says
//! how long a step takes. [`rehearse`] runs the engine's scheduler over them, without an engine. What it answers about memory
//! is the scheduler's own arithmetic; only when things happen depends on the time of a step.
//!
//! Nothing here reads files or a clock; the same input gives the same answer.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod answer;
mod clock;
mod outcome;
pub mod pace;
pub mod planned;
mod pool;
#[cfg(test)]
mod properties;
pub mod report;
mod request;
mod run;
mod scheduling;
pub mod search;
mod settings;
mod slots;
pub mod trace;
pub mod vllm;
mod watch;

pub use clock::StepTime;
pub use outcome::{Outcome, Spread};
pub use request::{Prefix, Request};
pub use run::{rehearse, rehearse_by};
pub use scheduling::Scheduling;
pub use settings::{Cells, Group, Keeps, Policy, Settings};
pub use watch::{Curve, Point};
