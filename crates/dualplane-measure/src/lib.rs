//! Measures a model server: **drives it with a shape of requests and reads both planes each second, on one clock**.
//!
//! [`drive`] sends requests, open or closed, and reads streamed answers; `client.rs` times one of them over `wire.rs`, `prompt.rs` writes
//! prompts of a wanted length. [`planes`] samples host RAM, VRAM and the engine's own page in a thread. [`server`] starts and
//! watches the server, and collects what is left when it dies. [`tool`] runs the load tool of others. What comes of it all is
//! gathered by `dualplane-runs`, which is pure.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod agent;
mod client;
mod drive;
mod engine;
mod known;
pub mod planes;
mod prompt;
pub mod server;
#[cfg(test)]
mod tests;
mod tls;
pub mod tool;

pub use client::{Api, Target, TargetError};
pub use drive::{Ended, Progress, Work, drive};
pub use engine::{About, about, wait_ready};
pub use known::Known;
pub use prompt::{Calibration, calibrate};
