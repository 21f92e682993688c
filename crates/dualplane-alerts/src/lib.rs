//! Alerts and recording rules for Prometheus, over both memory planes.
//!
//! [`Rules`] are the data of `knowledge/alerts/`. [`select`] takes what an engine, a source or a person asked for and fills the
//! thresholds; [`emit`] writes the selection as a rule file, a `PrometheusRule`, values of a chart, or as tests for promtool;
//! [`show`] tells people what there is.
//!
//! Like the core it is pure: no I/O, no clock, no environment. It knows no Prometheus either: what it returns is text.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod emit;
#[cfg(test)]
mod examples;
mod expression;
mod quantity;
mod rule;
mod select;
pub mod show;

pub use quantity::duration;
pub use rule::{Alert, Case, Record, Rules, Severity, Source, Unit, Value};
pub use select::{Alerting, Fault, Options, Recording, Selection, select, template, unknown};
