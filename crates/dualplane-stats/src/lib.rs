//! What noisy series say: whether memory grows ([`drift`]), how far a candidate is from a baseline ([`compare`]), and ranks.
//!
//! All of it is deterministic and total: the same values, in any order, give the same answer, what is no number is left out,
//! and chance comes from a seed of the caller. Like the core it is pure: no I/O, no clock, no environment. It depends on
//! nothing.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod compare;
pub mod drift;
#[cfg(test)]
mod drift_tests;
#[cfg(test)]
mod made;
pub mod random;
pub mod rank;
pub mod student;
