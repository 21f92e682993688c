//! Requests: their shape, and what they need of a KV cache.

mod demand;
mod shape;

pub use demand::{Demand, Preemption};
pub use shape::{SHAPE, Shape};

use serde::Serialize;

/// Requests of one prompt and answer length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// Tokens of the prompt.
    pub(crate) input: f64,
    /// Tokens of the answer.
    pub(crate) output: f64,
    /// Share of all requests.
    pub(crate) share: f64,
}

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

/// The shapes that have a name (`knowledge/shapes`), each as JSON.
const PROFILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

/// Names of the shapes that have one.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

impl Traffic {
    /// The shape of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (_, text) = PROFILES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        serde_json::from_str::<Shape>(text).ok()?.traffic().ok()
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
        let all: Vec<_> = names().collect();
        for name in ["chat", "rag", "long", "batch", "agents"] {
            assert!(all.contains(&name), "{name} is not in {all:?}");
        }
        for (name, text) in PROFILES {
            let shape: Shape = serde_json::from_str(text).unwrap();
            let t = shape.traffic().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(&t.name, name);
            assert!(t.input_p50 < t.input_p99 && t.output_p50 < t.output_p99, "{t:?}");
            assert!(!t.source.is_empty());
        }
        assert!(Traffic::named("Chat").is_some() && Traffic::named("chats").is_none());
    }
}
