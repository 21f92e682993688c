//! What was measured of a model server, as a document, and what a release may do by it.
//!
//! [`document::Measure`] is `dualplane.measure/v1`: `dualplane measure` writes it, `gate`, `tune` and `rehearse` read it.
//!
//! Like the core it is pure: no I/O, no clock, no environment.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::disallowed_methods
    )
)]

pub mod document;
