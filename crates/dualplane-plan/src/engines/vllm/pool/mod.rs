//! From a card's memory to what the engine prints: defaults, blocks, tokens, concurrency, refusal.

mod bands;
mod blocks;
mod online;
mod resolve;
mod stages;
mod start;

pub(crate) use bands::{activation, cuda_graphs, non_torch};
pub(crate) use blocks::{Blocks, Pool};
pub(crate) use online::as_served;
pub(crate) use resolve::{Settled, oldest, settle};
pub(crate) use stages::stage_of;
pub(crate) use start::{check, checks, held, own};
