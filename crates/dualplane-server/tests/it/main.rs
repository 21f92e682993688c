//! The server against real databases, real sockets and real kills.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs
)]

mod agent;
mod api;
mod bundles;
mod cluster;
mod contract;
mod deaths;
mod faults;
mod harness;
mod message;
mod network;
mod notify;
mod oidc;
mod pages;
mod postgres;
mod rights;
mod roles;
mod tls;
mod unit;
mod watch;
