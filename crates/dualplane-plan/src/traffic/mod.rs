//! Requests: their shape, and what they need of a KV cache.

mod demand;
mod shape;

pub use demand::{Demand, Preemption};
pub use dualplane_shape::{SHAPE, Shape, names};

use dualplane_shape::Cell;
use serde::Serialize;

/// What was stated of requests, in a few figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// Name of the shape.
    #[serde(rename = "profile")]
    pub name: String,
    /// Half of the prompts are at most this long.
    pub input_p50: u64,
    /// 99 of 100.
    pub input_p99: u64,
    /// Half of the answers.
    pub output_p50: u64,
    /// 99 of 100.
    pub output_p99: u64,
    /// At once.
    pub concurrency: u64,
    /// Share of the prompts' tokens that another request brought before, in percent.
    pub prefix_percent: u64,
    /// Whether somebody's requests were counted for it.
    pub measured: bool,
    /// Where it is from.
    pub source: String,
    #[serde(skip)]
    cells: Vec<Cell>,
    /// Deviation of the number of requests at once, where they come by chance.
    #[serde(skip)]
    by_chance: bool,
    #[serde(skip)]
    prefixes: u64,
}

impl Traffic {
    /// The shape of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::of(&dualplane_shape::named(name)?).ok()
    }

    /// So many requests at once instead of those that the shape says.
    #[must_use]
    pub fn at_once(self, concurrency: u64) -> Self {
        Self { concurrency, by_chance: false, ..self }
    }

    /// The longest requests, in tokens.
    #[must_use]
    pub const fn longest(&self) -> u64 {
        self.input_p99.saturating_add(self.output_p99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_shapes_can_be_read() {
        for name in names() {
            let t = Traffic::named(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(t.name, name);
            assert!(t.input_p50 < t.input_p99 && t.output_p50 < t.output_p99, "{t:?}");
        }
        assert!(Traffic::named("Chat").is_some() && Traffic::named("chats").is_none());
    }
}
