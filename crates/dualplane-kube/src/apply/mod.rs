//! The only part of dualplane that writes to a cluster: finds the object that a change is for, asks the server what the
//! change would do, and sends it.
//!
//! What was shown is what is sent: each patch carries the version of the object that was shown.

mod locate;
mod send;

pub use locate::{Located, config_map, named, of_pod, resize_served, whole};
pub use send::{ApplyError, ChangeRequest, Preview, budgets, carry_out, current, preview};

/// Field manager of every change.
pub const MANAGER: &str = "dualplane";
