//! The KV cache: pages by kind of layer, groups of layers that share block ids, and what a request takes of them.

mod backend;
mod group;
mod kernel;
mod layers;
mod spec;

pub(crate) use backend::choose as backend_of;
pub(crate) use group::{Groups, groups};
pub(crate) use layers::{Setting, specs};
pub(crate) use spec::{Kind, Need};
