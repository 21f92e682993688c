//! What noisy series say: percentiles so far; drift and differences follow.
//!
//! Like the core it is pure: no I/O, no clock, no environment. It depends on nothing.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod rank;
