//! Follows the kernel's messages: OOM kills, Xid events, complaints of the GPU driver.
//!
//! `source.rs` reads records from `/dev/kmsg` or lines from a pipe or file, `follow.rs` keeps to the sequence numbers,
//! `xid_counts.rs` counts Xids by GPU and code, `state.rs` keeps both over a restart, `recent.rs` keeps
//! lines for quoting, `kernel.rs` puts it together.
//!
//! **Once and only once.** The kernel numbers its records. What was taken in is known by boot and number, so nothing is
//! doubled; a number that was jumped over is counted as lost, which happens when the ring overwrote it.

mod follow;
mod kernel;
mod recent;
mod record;
mod source;
mod state;
mod xid_counts;

pub use follow::{Follower, Line};
pub use kernel::{Kernel, KernelMessage};
pub use recent::Recent;
pub use record::{Record, parse};
pub use source::Source;
pub use state::{State, StateError};
pub use xid_counts::{XidCount, XidCounts, XidKey, sub_code};
