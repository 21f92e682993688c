//! Requests and limits of containers from what was measured of both memory planes over time.
//!
//! [`series::read`] takes what Prometheus' HTTP API answers, [`record::containers`] makes the instances of each container of it,
//! [`phases`] tells start-up and steady state apart, and [`size::size`] computes requests and limits with their reasons.
//! [`measured`] takes reports of `measure` instead. [`emit`] writes them, and [`scale`] says how many replicas follow the load.
//!
//! Like the core it is pure: no I/O, no clock, no environment.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod emit;
pub mod measured;
pub mod phases;
pub mod record;
pub mod scale;
pub mod series;
pub mod size;
#[cfg(test)]
mod tests;
