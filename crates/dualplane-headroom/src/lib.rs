//! Whether the process that asks has room for its next batch, on both planes.
//!
//! [`HostReader`] reads the memory cgroup of the process, the groups above it and the machine; [`VramReader`] asks the driver.
//! [`Meter`] joins them with what batches took so far and answers: room, or a [`Refusal`] with its numbers. Time is given by the
//! caller. `python/` makes `MemoryGuard` of it.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing))]

mod decide;
mod growth;
mod host;
mod meter;
mod need;
mod vram;

pub use decide::{Allowed, Refusal, Vram};
pub use host::{Host, HostReader, Scope};
pub use meter::{Look, Meter};
pub use vram::VramReader;
