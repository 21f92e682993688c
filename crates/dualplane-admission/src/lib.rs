//! Which request a model server can take now, so that neither its VRAM nor its host RAM overflows.
//!
//! Pure: what happens and when is passed in, what to do comes back. [`Admission`] holds it together:
//!
//! - [`cost`] is what a request may take of both planes, [`tokens`] how many tokens its bytes may be, [`template`] what a
//!   server puts around texts that were counted, [`outputs`] how many it will generate, [`unpaged`] what it takes of a server that does not page its memory;
//! - [`server`] is what one server has and holds, with [`throttle`] as its closed loop and [`host`] as its host RAM;
//! - [`queue`] is who waits, in which order;
//! - [`decision`] is what a caller is told, with the numbers.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod admission;
mod arithmetic;
mod beside;
pub mod cost;
pub mod decision;
pub mod host;
mod members;
mod model;
pub mod outputs;
mod place;
pub mod policy;
pub mod queue;
pub mod server;
pub mod template;
pub mod throttle;
pub mod tokens;
mod turns;
pub mod unpaged;

pub use admission::{Admission, Event, Request};
pub use cost::{Cost, Shape};
pub use decision::{Code, Decision, Grant, Refusal, Ticket, Would};
pub use policy::Policy;

/// Milliseconds on the caller's monotonic clock.
pub type Ms = u64;
