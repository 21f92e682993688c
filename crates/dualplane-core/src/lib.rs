//! The pure core of dualplane: **evidence → facts → verdict**; `dualplane_report` makes
//! actions and reports of it.
//!
//! - [`evidence`] recognises files and turns them into sources of lines and Kubernetes objects;
//! - [`sift`] keeps of a log too large to hold the lines that say something;
//! - [`facts`] extracts what those say, each with its place;
//! - [`verdict`] puts memory errors into causal order and names the first;
//! - [`change`] computes what a patch changes on a live object, and the way back;
//! - [`redact`] masks secrets and user text in what is quoted.
//!
//! [`knowledge`] is the data that all of them consult. Nothing here does I/O, reads a clock or the environment, or
//! fails on bad data: odd input becomes a gap or `unknown`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod change;
pub mod evidence;
pub mod facts;
/// What `fuzz/` reaches of the private parsers; no part of the interface.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::evidence::fuzz::*;
    pub use crate::facts::fuzz::*;
}
pub mod knowledge;
pub mod redact;
pub mod sift;
pub mod verdict;

pub(crate) use dualplane_base::{text, time, units};
