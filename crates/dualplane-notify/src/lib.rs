//! What is told of a death: **incident → notice → message of a channel**, and when: **policy + time → send, fold or wait**.
//!
//! - [`Notice`] is what every message says: class, plane, first error, top action, link;
//! - [`Channel`] writes it in the form of a service, by the templates of `knowledge/notify/`;
//! - [`Desk`] decides with a given time: one loop is told once in a while, a channel a bounded number of times an hour, and
//!   nothing in quiet hours but what is urgent. What waits is counted, never lost;
//! - [`guard`] says which addresses a message may be sent to.
//!
//! Nothing is sent here, no secret is read, and no clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod channel;
mod desk;
mod fill;
pub mod guard;
mod mail;
mod notice;
mod quiet;

pub use channel::{Body, Channel};
pub use desk::{Decision, Desk, Policy};
pub use notice::Notice;
pub use quiet::{Quiet, QuietError};
