//! Rounds over both planes: which containers and GPUs, how often, into records of fixed size.
//!
//! `sampler.rs` takes a round, `containers.rs` keeps the groups that are read, `rate.rs` says when the next round is due,
//! `record.rs` is what a round leaves.

mod containers;
mod rate;
mod record;
mod sampler;

pub use containers::{Containers, Slot};
pub use rate::{Rate, RateLimits, Scope};
pub use record::{FIELDS, Record, RecordKind, SIZE};
pub use sampler::{Config, Round, SampleEvent, Sampler};

#[cfg(test)]
mod tests;
