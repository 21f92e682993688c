//! What a death leaves: a bundle, its summary, and the folder of all of them.
//!
//! `summary.rs` is what is told of one, `store.rs` keeps them within their budget, `folder.rs` reads
//! them, `whole.rs` writes files that are there as a whole or not at all.

pub(crate) mod folder;
mod store;
mod summary;
mod whole;

pub use dualplane_base::incident_id::{id_of, is_id};
pub use folder::{BUNDLE_SUFFIX, list};
pub use store::{Counts, Store, StoreError};
pub use summary::{Kind, LoopKey, SCHEMA, State, Summary};
pub use whole::{copy_whole, write_whole};

#[cfg(test)]
mod tests;
