//! HTTP/1.1 to model servers at the price of a socket.
//!
//! Thousands of streams are open at once, and each must cost little and be timed well: all of a thread share one buffer, into
//! which a stream reads when it has something, and what is read is looked at at once. A library for all of HTTP keeps some
//! 30 KiB for each connection and a task beside that of the request.
//!
//! - [`connection`] is a connection, encrypted or not;
//! - [`answer`] reads what comes over it;
//! - [`tls`] says whom this machine trusts.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod answer;
pub mod connection;
pub mod tls;

pub use answer::{Answer, Broken, Sink};
pub use connection::{Unreached, Wire};
