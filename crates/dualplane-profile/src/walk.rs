//! A JSON document, walked without keeping it: what its keys tell of a request, however deep they stand.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::keys::{Key, key, seconds};
use crate::tally::{MAX_TOKENS, Seen};

/// Blocks of prompts that are remembered, to tell which came before.
const MAX_BLOCKS: usize = 1 << 20;
/// Tokens of a block of Mooncake's traces.
const BLOCK: u64 = 512;
/// Levels that are walked.
const DEEPEST: u32 = 24;

/// Blocks of prompts by their number, and whether the last document named any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks(HashSet<u64>, bool);

/// What is taken out of a document.
pub(crate) struct Walk<'a> {
    pub(crate) seen: &'a mut Seen,
    pub(crate) blocks: &'a mut Blocks,
    pub(crate) depth: u32,
    key: Option<Key>,
}

/// Walks a line; none where it is no whole document.
pub(crate) fn walk(line: &[u8], blocks: &mut Blocks) -> Option<Seen> {
    let mut seen = Seen::default();
    let mut reader = serde_json::Deserializer::from_slice(line);
    let root = Walk { seen: &mut seen, blocks, depth: 0, key: None };
    root.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    // Traces with blocks count milliseconds from their own beginning.
    if std::mem::take(&mut blocks.1) {
        seen.at = seen.at.map(|at| if at < 1e9 { at / 1000.0 } else { at });
    }
    Some(seen)
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        if self.depth > DEEPEST {
            return IgnoredAny::deserialize_any(d);
        }
        d.deserialize_any(self)
    }
}

/// [`IgnoredAny`] as a function.
trait Ignore {
    fn deserialize_any<'de, D: serde::Deserializer<'de>>(d: D) -> Result<(), D::Error>;
}

impl Ignore for IgnoredAny {
    fn deserialize_any<'de, D: serde::Deserializer<'de>>(d: D) -> Result<(), D::Error> {
        serde::Deserialize::deserialize(d).map(|_: Self| ())
    }
}

impl Walk<'_> {
    fn number(self, n: f64) {
        let Some(key) = self.key else { return };
        let tokens = (0.0..=MAX_TOKENS as f64).contains(&n).then_some(n as u64);
        let seen = self.seen;
        match key {
            // The prompt stands whole in `usage`; a second count of the same document does not add to it.
            Key::Input => seen.input = seen.input.max(tokens),
            Key::Output => seen.output = seen.output.max(tokens),
            Key::Cached => seen.cached = seen.cached.max(tokens),
            Key::MostOutput => seen.most_output = tokens.or(seen.most_output),
            Key::Time => seen.at = seen.at.or(seconds(n)),
            Key::Seconds if n >= 0.0 => seen.seconds = Some(n),
            Key::Milliseconds if n >= 0.0 => seen.seconds = Some(n / 1000.0),
            Key::Status => seen.take(key, &format!("{n}")),
            Key::Tenant => seen.take(key, &format!("{n}")),
            _ => {}
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, n: u64) -> Result<(), E> {
        self.number(n as f64);
        Ok(())
    }

    fn visit_i64<E>(self, n: i64) -> Result<(), E> {
        self.number(n as f64);
        Ok(())
    }

    fn visit_f64<E>(self, n: f64) -> Result<(), E> {
        self.number(n);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        match self.key {
            Some(Key::Text) => {
                self.seen.characters = self.seen.characters.saturating_add(text.chars().count() as u64);
            }
            // Numbers in words: log pipelines make words of all.
            Some(key) if text.len() <= 128 => self.seen.take(key, text),
            _ => {}
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list
            .next_element_seed(Walk {
                seen: self.seen,
                blocks: self.blocks,
                depth: self.depth + 1,
                key: self.key,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            if name == "hash_ids" {
                let ids: Vec<u64> = map.next_value().unwrap_or_default();
                self.seen.cached = Some(known(&mut self.blocks.0, &ids));
                self.blocks.1 = true;
                continue;
            }
            let found = key(name.as_bytes());
            map.next_value_seed(Walk {
                seen: self.seen,
                blocks: self.blocks,
                depth: self.depth + 1,
                key: found,
            })?;
        }
        Ok(())
    }
}

/// Tokens of the blocks at the beginning that an earlier prompt had.
fn known(blocks: &mut HashSet<u64>, ids: &[u64]) -> u64 {
    let before = ids.iter().take_while(|id| blocks.contains(id)).count() as u64;
    for id in ids {
        if blocks.len() < MAX_BLOCKS {
            blocks.insert(*id);
        }
    }
    before * BLOCK
}
