//! Dashboards for Grafana, over both memory planes.
//!
//! [`boards`] are the data of `knowledge/dashboards/`. [`ready`] keeps the panels that a selection of rules can feed and fills in
//! variables and thresholds, [`emit`] writes a board as Grafana takes it, and [`show`] tells people what there is.
//!
//! A board reads the records of `dualplane-alerts` and nothing else, so that names of series by engine and version, and every
//! threshold, stand in one place. Like the core it is pure: no I/O, no clock, no environment.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod board;
pub mod emit;
#[cfg(test)]
mod examples;
mod grid;
mod panel;
mod query;
mod ready;
pub mod show;
mod variable;

pub use board::{Board, Kind, Measure, Panel, Row, Variable, boards, find};
pub use query::records;
pub use ready::{Limit, Ready, ReadyPanel, ReadyQuery, ReadyRow, ready};
