//! What a death leaves: a bundle, its summary, and the folder of all of them.
//!
//! `id.rs` names them, `summary.rs` is what is told of one, `store.rs` keeps them within their budget, `whole.rs` writes
//! files that are there as a whole or not at all.

mod id;
mod store;
mod summary;
mod whole;

pub use id::{id_of, is_id};
pub use store::{BUNDLE_SUFFIX, Counts, Store, StoreError, list};
pub use summary::{Kind, LoopKey, SCHEMA, State, Summary};
pub use whole::write_whole;

#[cfg(test)]
mod tests;
