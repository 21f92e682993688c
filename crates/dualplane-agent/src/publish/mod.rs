//! What leaves the agent: metrics and incidents over HTTP, bundles to where they outlive the node, an Event on the pod.
//!
//! Nothing here may hold up the sampling: [`Shared`] takes a view behind a lock that is held for a pointer, everything
//! else runs in threads of its own, off the folder of incidents.

mod cost;
mod counts;
mod events;
mod http;
pub mod metrics;
mod sinks;

pub use cost::Cost;
pub use counts::{Counts, SinkCounts, Tally, Verdicts};
pub use events::{EventSink, Outcome};
pub use http::{Access, DEFAULT_PORT, Options, Server, Shared};
pub use sinks::{
    Deliveries, Directory, Method, NoHeader, Sink, SinkError, Web, WebConfig, WebError, read_headers,
};

/// FNV-1a: names that must stay the same over versions of the agent. It protects nothing.
fn stable_hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|p| p.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
