//! Rounds into views: the sampler's records, the kubelet's names, process lists, engines.
//!
//! `observer.rs` takes rounds, `names.rs` names containers, `processes.rs` lists their processes now and then, `allocations.rs` asks
//! the kubelet which GPUs they were given.

mod allocations;
mod names;
mod observer;
mod processes;

pub use observer::{Config, Observer};

#[cfg(test)]
mod tests;
