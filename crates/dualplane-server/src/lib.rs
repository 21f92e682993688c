//! Keeps the incidents of a fleet and shows them.
//!
//! - [`store`] keeps them, in SQLite or Postgres; [`ingest`] is the way in: what is acknowledged is on the disk;
//! - [`api`] is version 1 of the API, [`auth`] says who may what, [`login`] lets people sign in, [`ended`] ends their sessions,
//!   [`problem`] is how errors are answered;
//! - [`watch`] captures what dies in a cluster where no agent does;
//! - [`notify`] tells channels of new deaths;
//! - [`pages`] are for people, by `dualplane-pages`; [`mod@rehearse`] asks `dualplane` whether a fix would have held;
//! - [`serve`] listens and ends in order, [`config`] refuses to serve the network without TLS and tokens;
//! - [`retention`] removes what is too old;
//! - [`demo`] fills a server with recorded incidents.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod api;
pub mod app;
pub mod audit;
pub mod auth;
pub mod clock;
pub mod config;
pub mod demo;
pub mod ended;
pub mod ingest;
pub mod lease;
pub mod login;
pub mod notify;
pub mod pages;
pub mod problem;
pub mod rehearse;
pub mod retention;
pub mod serve;
pub mod store;
pub mod watch;
