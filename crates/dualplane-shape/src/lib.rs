//! The **shape** of requests that a model server gets (`dualplane.shape/v1`), and the requests that are drawn from it.
//!
//! [`Shape`] is the file: a joint histogram of prompt and answer lengths, how requests arrive, what they share, and which are
//! cancelled; never a prompt. [`Shape::draw`] makes requests of it by a seed: who sends them to a server and who simulates the
//! server draw the same. [`Pattern`] bends them into a ramp, a burst, or a spike. Nothing here reads files or a clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod cells;
mod draw;
mod pattern;
#[cfg(test)]
mod properties;
mod random;
mod shape;
mod write;

pub use cells::{Cell, quantile};
pub use draw::{Draw, Request};
pub use pattern::{Pattern, Play};
pub use random::Random;
pub use shape::{
    Arrival, Cancelled, LONG, Long, MAX_CELLS, MAX_RATES, MAX_TENANTS, Points, Requests, SHAPE, Shape, Tenant,
};

/// The shapes that have a name (`knowledge/shapes`), each as JSON.
const PROFILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

/// Names of the shapes that have one.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

/// The shape of this name.
#[must_use]
pub fn named(name: &str) -> Option<Shape> {
    let (_, text) = PROFILES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name))?;
    serde_json::from_str::<Shape>(text).ok()
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
            shape.check().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(&shape.name, name);
            assert!(!shape.source.is_empty());
        }
        assert!(named("Chat").is_some() && named("chats").is_none());
    }
}
