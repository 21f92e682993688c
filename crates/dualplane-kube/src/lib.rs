//! Kubernetes adapter: evidence of a live cluster, as the same files that `triage` reads from a bundle.
//!
//! Everything here only reads, but for [`apply`] and [`event`]; [`review`] asks by sending what is kept nowhere. A source that fails is a [`dualplane_core::evidence::Gap`] with its
//! reason; the others go on. What comes from the cluster is bounded where it is read and redacted before it is handed
//! on, so that whatever writes it to a disk cannot write a secret.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod access;
mod agents_events;
pub mod api;
pub mod apply;
pub mod bundle;
pub mod capture;
pub mod ends;
pub mod event;
pub mod find;
pub mod follow;
pub mod gone;
mod killed_inside;
mod kubeconfig;
pub mod map;
pub mod node_pods;
pub mod review;
pub mod target;
