//! From a card's memory to what the engine prints: defaults, blocks, tokens, concurrency, refusal.

mod bands;
mod blocks;
mod rejected;
mod resolve;
mod start;

pub(crate) use bands::{activation, cuda_graphs, non_torch};
pub(crate) use blocks::{Blocks, Pool};
pub(crate) use resolve::{oldest, settle};
pub(crate) use start::{check, checks, held, own};
