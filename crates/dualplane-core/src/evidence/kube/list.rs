//! A large list of objects, read item by item: a namespace's events may be a million, and their parse tree would take
//! ten times the text.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::evidence::kube_model::Event;
use crate::evidence::{Bundle, kube};

/// Smaller lists are read at once, with the line of each event.
pub(in crate::evidence) const LARGE: usize = 8 << 20;
/// Events that differ by more than their time and count.
const MAX_EVENTS: usize = 100_000;

/// What a list held.
#[derive(Debug, Default)]
pub(in crate::evidence) struct Listed {
    /// Items that triage uses.
    pub(in crate::evidence) used: usize,
    /// Events beyond [`MAX_EVENTS`].
    pub(in crate::evidence) dropped: usize,
    /// What broke it off.
    pub(in crate::evidence) broken: Option<serde_json::Error>,
}

/// Reads a list into the bundle; `None` where the text is something else.
pub(in crate::evidence) fn read(bundle: &mut Bundle, bytes: &[u8], file: &str) -> Option<Listed> {
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace());
    if bytes.len() < LARGE || first != Some(&b'{') {
        return None;
    }
    let mut list = List {
        bundle,
        file,
        kind: String::new(),
        seen: HashMap::new(),
        listed: Listed::default(),
        items: false,
    };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let result = list.deserialize(&mut json);
    let List { items, mut listed, .. } = list;
    listed.broken = result.err();
    items.then_some(listed)
}

struct List<'b> {
    bundle: &'b mut Bundle,
    file: &'b str,
    kind: String,
    /// Where the event with this object, reason and message lies.
    seen: HashMap<Key, usize>,
    listed: Listed,
    items: bool,
}

type Key = ((String, String, String), String, String, String);

impl<'de> DeserializeSeed<'de> for &mut List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of Kubernetes objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "kind" => self.kind = map.next_value::<Value>()?.as_str().unwrap_or_default().to_owned(),
                "items" => {
                    self.items = true;
                    map.next_value_seed(Items(self))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Items<'l, 'b>(&'l mut List<'b>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(item) = seq.next_element::<Value>()? {
            self.0.add(&item);
        }
        Ok(())
    }
}

impl List<'_> {
    fn add(&mut self, item: &Value) {
        let before = self.bundle.events.len();
        // kubectl writes `kind` of the list behind its items; its items have kinds of their own.
        let of = self.kind.strip_suffix("List").unwrap_or_default();
        self.listed.used += usize::from(kube::add_item(self.bundle, item, of, self.file));
        if self.bundle.events.len() == before {
            return;
        }
        let Some(event) = self.bundle.events.pop() else { return };
        let key =
            (event.object.clone(), event.namespace.clone(), event.reason.clone(), event.message.clone());
        match self.seen.get(&key) {
            Some(i) => {
                if let Some(old) = self.bundle.events.get_mut(*i) {
                    together(old, event);
                }
            }
            None if self.seen.len() >= MAX_EVENTS => self.listed.dropped += 1,
            None => {
                self.seen.insert(key, before);
                self.bundle.events.push(event);
            }
        }
    }
}

/// The same said again, as the API server counts it.
fn together(old: &mut Event, new: Event) {
    old.count = old.count.saturating_add(new.count);
    old.first = match (old.first, new.first) {
        (Some(a), Some(b)) if a.ms_until(b).is_some_and(|ms| ms > 0) => Some(a),
        (a, b) => b.or(a),
    };
    old.last = match (old.last, new.last) {
        (Some(a), Some(b)) if b.ms_until(a).is_some_and(|ms| ms > 0) => Some(a),
        (a, b) => b.or(a),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::RawFile;

    fn list(events: usize, tail: &str) -> Bundle {
        let mut text = String::from("{\"apiVersion\":\"v1\",\"items\":[\n");
        for i in 0..events {
            let comma = if i > 0 { "," } else { "" };
            text.push_str(&format!(
                "{comma}{{\"kind\":\"Event\",\"involvedObject\":{{\"kind\":\"Pod\",\"name\":\"p{}\"}},\"reason\":\"BackOff\",\"message\":\"Back-off restarting failed container\",\"count\":2,\"lastTimestamp\":\"2026-11-21T10:{:02}:00Z\"}}\n",
                i % 100,
                i % 60
            ));
        }
        text.push_str(tail);
        assert!(text.len() > LARGE);
        Bundle::from_files(vec![RawFile::new("events.json", text)])
    }

    #[test]
    fn a_large_list_is_read_item_by_item_and_the_same_events_are_counted_together() {
        let b = list(60_000, "],\"kind\":\"List\"}");
        assert_eq!((b.events.len(), b.events[0].count), (100, 1200), "{:?}", b.gaps);
        let at_least = crate::time::parse_rfc3339("2026-11-21T10:40:00Z").unwrap();
        assert!(at_least.ms_until(b.events[0].last.unwrap()).is_some_and(|ms| ms >= 0));
    }

    #[test]
    fn what_stands_before_the_break_is_used() {
        let b = list(60_000, ",{\"kind\":\"Ev");
        assert_eq!(b.events.len(), 100);
        assert!(b.gaps[0].why.contains("broken at line"), "{:?}", b.gaps);
    }
}
