//! The recorder against real groups, real kills and the kubelet's folders as the kubelet makes them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod deaths;
mod kubelet;
