//! Where bundles go so that they outlive the node.
//!
//! A sink takes one incident and says whether it arrived. What is tried again, when, and what was delivered before a crash
//! is the business of [`Deliveries`]. A sink must bear the same incident twice: between arrival and the note of it lies a
//! moment in which the agent can be killed, so each writes to a name that follows from the incident.

mod deliveries;
mod directory;
mod headers;
mod web;
mod worker;

use std::path::Path;
use std::time::Duration;

use crate::incident::Summary;

pub use deliveries::Deliveries;
pub use directory::Directory;
pub use headers::{NoHeader, read_headers};
pub use web::{Method, Web, WebConfig, WebError};

/// It did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// It may later: it is tried again.
    #[error("{0}")]
    Later(String),
    /// It never will.
    #[error("{0}")]
    Refused(String),
}

/// A place for incidents.
pub trait Sink: Send {
    /// A name of a file, the same over restarts and different for another destination: what was delivered is noted by it.
    fn name(&self) -> &str;

    /// Brings an incident there. Returns when it is as safe there as the place can make it.
    ///
    /// # Errors
    /// See [`SinkError`].
    fn deliver(&mut self, summary: &Summary, bundle: &Path) -> Result<(), SinkError>;

    /// Whether it could take an incident now, as far as that can be told without one: a mount that is missing, a token
    /// that cannot be read.
    ///
    /// # Errors
    /// What is wrong, in one line.
    fn check(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// The least time between two incidents.
    fn pace(&self) -> Duration {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests;
