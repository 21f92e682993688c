//! The engines' own metrics: KV use, requests, preemptions, told by the engine in the container.
//!
//! No API server is needed: `detect.rs` knows an engine by its processes, `sockets.rs` finds where it listens from
//! `/proc/PID/net`, `http.rs` asks within hard limits, `poller.rs` keeps which port answered and how long a silent one is left
//! alone, `thread.rs` does all of that beside the rounds: an engine hangs while it dies, and no round may wait for it.

mod detect;
mod histograms;
mod http;
mod poller;
mod sockets;
mod thread;

pub use detect::{Candidate, candidate};
pub(crate) use http::{Client, Response};
pub use thread::{Answer, Engines};

#[cfg(test)]
mod tests;
