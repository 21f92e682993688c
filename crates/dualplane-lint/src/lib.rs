//! Rules for manifests of GPU model servers: objects in, findings out.
//!
//! Text goes through [`read`] and becomes [`Object`]s; a [`Linter`] holds each object against the rules of
//! `knowledge/lint/`, and at the end against each other. A rule is an expression of CEL where structure decides, so that
//! [`policy`] can hand the same expression to an API server, or a check in Rust where the plan's arithmetic decides.
//!
//! Like the core it is pure: no I/O, no clock, no environment. Nothing here knows files: `lint --live` may pass objects of a
//! cluster.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod baseline;
mod checks;
#[cfg(test)]
mod examples;
mod expression;
mod finding;
mod fix;
mod linter;
mod memo;
mod object;
mod place;
mod planned;
pub mod policy;
pub mod read;
mod reads;
pub mod report;
mod rule;
mod server;
mod suppress;
mod yaml;

pub use baseline::Baseline;
pub use finding::{Edit, Finding, Severity, Source};
pub use fix::{Patched, fix};
pub use linter::{Linter, Options, Outcome};
pub use object::{Object, Pods};
pub use place::{Locator, Spot};
pub use rule::{Each, Rule, Rules};
pub use suppress::Ignores;
