//! Real kills by the real kernel in groups of our own that look like a container's: the counters that the sampler sees,
//! the record that the follower gets, and what the core makes of it. The same tests run on cgroup v1 and v2.
//!
//! Needs root, a memory cgroup and /dev/kmsg. Where CI sets `DUALPLANE_REAL_OOM=1`, their absence is a failure.
//! `node.rs` lets the whole machine run out, and does so only with `DUALPLANE_NODE_OOM=1`: `e2e/vm` has a machine for it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod kubelet;
mod limits;
mod machine;
mod node;
