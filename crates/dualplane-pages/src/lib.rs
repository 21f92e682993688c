//! The pages of the server as strings: **incident → page**.
//!
//! - [`incident`] shows one death: the verdict, the first error in its log, both planes on one clock, what to do and why;
//! - [`rehearsal`] shows whether its fix would have held;
//! - [`list`], [`fleet`], [`gpus`] and [`capacity`] show many; [`handover()`] is a note for the next shift, in Markdown;
//! - [`scene`] is what of a bundle such a page needs, made once;
//! - [`assets`] are the files that pages load, and [`POLICY`] what a browser may do with them.
//!
//! Markup is made by macros that escape (`maud`), and what comes from outside goes through `text` besides, which keeps
//! out what is invisible. A page says without scripts what it says. Nothing here does I/O or reads a clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod assets;
mod bar;
pub mod capacity;
mod days;
pub mod fleet;
pub mod gpus;
mod handover;
pub mod incident;
pub mod list;
pub mod rehearsal;
pub mod scene;
mod shell;
mod text;
mod verdict;

pub use assets::{Asset, asset, assets};
pub use handover::handover;
pub use scene::Scene;
pub use shell::{Frame, POLICY, problem};
pub use verdict::Verdict;
