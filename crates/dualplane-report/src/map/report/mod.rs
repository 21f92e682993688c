//! Maps as people and programs read them: a tree of text, JSON, YAML.

mod json;
mod text;
mod tree;

pub use json::{MAP, json, yaml};
pub use text::text;
