//! A proxy before model servers that admits, queues or refuses requests so that neither memory plane overflows.
//!
//! The arithmetic is in `dualplane-admission`; this crate moves bytes and reads the world for it:
//!
//! - [`config`] is what the operator says, checked before a port is bound;
//! - [`ask`] is what a request asks for, read from its body;
//! - [`state`] is what all connections share, [`forward`] the way of one request, [`answer`] what is followed of its answer;
//! - [`tokenizer`] counts prompts as their model does;
//! - [`discover`] follows Services of a cluster, whose pods are servers, by their [`slices`];
//! - [`watch`] reads the servers: their metrics, their cgroup, whether they live; `told` reads the pages of others;
//! - [`access`] and [`traces`] tell of each request, without anything of its prompt;
//! - [`serve`] accepts connections and ends without dropping one, [`workers`] are the threads that serve them, [`admin`] tells
//!   of it all.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

pub mod access;
pub mod admin;
pub mod answer;
pub mod ask;
pub mod body;
mod check;
mod clients;
pub mod config;
pub mod discover;
mod endings;
mod ends;
pub mod exchange;
mod followers;
mod form;
pub mod forward;
mod heads;
pub mod held;
pub mod page;
mod patience;
pub mod pool;
pub mod prompts;
pub mod refuse;
pub mod serve;
mod servers;
pub mod service;
pub mod slices;
mod speak;
pub mod state;
pub mod status;
mod stream;
pub mod tenant;
pub mod tls;
pub mod tokenizer;
mod told;
pub mod traces;
mod usage;
pub mod vocabulary;
pub mod watch;
pub mod workers;
