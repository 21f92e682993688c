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
pub use counts::{Counts, Last, SinkCounts, Tally, Verdict, Verdicts};
pub use events::{EventSink, Outcome};
pub use http::{Access, DEFAULT_PORT, Options, Server, Shared};
pub use sinks::{
    Deliveries, Directory, Method, NoHeader, Sink, SinkError, Web, WebConfig, WebError, read_headers,
};

use dualplane_base::hash::fnv1a;

/// Of names that must stay the same over versions of the agent.
fn stable_hash(parts: &[&str]) -> u64 {
    fnv1a(parts.iter().flat_map(|p| p.bytes().chain([0])))
}
