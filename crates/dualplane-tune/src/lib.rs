//! Which lever to move on a model server, from what was measured of it, and whether a move is kept.
//!
//! [`Numbers::of`] takes what decides from a report of `measure`, [`flow`] says which of five branches holds, [`propose`] names
//! one move with its predicted effect and what it risks on both planes, and [`judge`] keeps or reverts it. [`Log`] is what a
//! search did so far: the same log gives the same next step, so that a search can be resumed.
//!
//! Like the core it is pure: no I/O, no clock, no environment. Starting servers and sending requests is the caller's.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::disallowed_methods
    )
)]

mod flow;
mod lever;
mod log;
mod numbers;
mod propose;
mod report;
mod settings;
#[cfg(test)]
mod tests;

pub use flow::{Branch, Finding, flow};
pub use lever::Lever;
pub use log::{Decision, Log, Next, SCHEMA, Step, judge, next};
pub use numbers::Numbers;
pub use propose::{Levers, Proposal, Tried, proposals, propose};
pub use report::{json, text};
pub use settings::{set, value};
