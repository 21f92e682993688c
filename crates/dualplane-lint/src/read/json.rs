//! JSON item by item: a list of a whole cluster is read without holding it.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::MAX_DOCUMENT;

/// An object of a stream of JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Number of the document, from 1.
    pub document: u64,
    /// Its place in a list; empty where it is the document.
    pub pointer: String,
    /// It.
    pub value: Value,
}

/// Passes each object on, items of lists one by one.
///
/// # Errors
/// What broke it off, with its line; what stood before was passed on.
pub fn items(reader: impl Read, each: &mut dyn FnMut(Item)) -> Result<u64, serde_json::Error> {
    let room = Rc::new(Cell::new(MAX_DOCUMENT));
    let bounded = Bounded { inner: reader, room: Rc::clone(&room) };
    let mut json = serde_json::Deserializer::from_reader(bounded);
    let mut document = 0;
    loop {
        // The end, or blanks and another document.
        let mut top = Top { document: document + 1, each: &mut *each, room: &room };
        match top.deserialize(&mut json) {
            Ok(()) => document += 1,
            Err(e) if e.is_eof() && document > 0 && json.end().is_ok() => return Ok(document),
            Err(e) => return Err(e),
        }
        room.set(MAX_DOCUMENT);
        if json.end().is_ok() {
            return Ok(document);
        }
    }
}

/// A reader that ends with an error where one object is longer than what is read.
struct Bounded<R> {
    inner: R,
    room: Rc<Cell<usize>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let left = self.room.get().checked_sub(n);
        self.room.set(left.ok_or_else(|| io::Error::other("one object is longer than 4 MiB"))?);
        Ok(n)
    }
}

struct Top<'a> {
    document: u64,
    each: &'a mut dyn FnMut(Item),
    room: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for &mut Top<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of Kubernetes, or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut rest = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" {
                map.next_value_seed(List { top: &mut *self, at: "/items" })?;
                rest.insert(key, Value::Bool(true));
            } else {
                rest.insert(key, map.next_value()?);
            }
        }
        if !rest.contains_key("items") {
            (self.each)(Item { document: self.document, pointer: String::new(), value: rest.into() });
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        List { top: self, at: "" }.visit_seq(seq)
    }
}

struct List<'l, 'a> {
    top: &'l mut Top<'a>,
    at: &'static str,
}

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut i = 0_u64;
        while let Some(value) = seq.next_element::<Value>()? {
            let pointer = format!("{}/{i}", self.at);
            (self.top.each)(Item { document: self.top.document, pointer, value });
            self.top.room.set(MAX_DOCUMENT);
            i += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Result<u64, String>) {
        let mut all = Vec::new();
        let result =
            items(text.as_bytes(), &mut |i| all.push(format!("{}{} {}", i.document, i.pointer, i.value)));
        (all, result.map_err(|e| e.to_string()))
    }

    #[test]
    fn lists_are_passed_item_by_item_and_a_break_costs_the_rest() {
        let (all, n) = read("{\"kind\":\"List\",\"items\":[{\"a\":1},{\"b\":2}]}\n{\"kind\":\"Pod\"}\n");
        assert_eq!(all, ["1/items/0 {\"a\":1}", "1/items/1 {\"b\":2}", "2 {\"kind\":\"Pod\"}"]);
        assert_eq!(n, Ok(2));
        let (all, broken) = read("{\"items\":[{\"a\":1},{\"b\"");
        assert!(all.len() == 1 && broken.unwrap_err().contains("line 1"));
        let (all, long) = read(&format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_DOCUMENT + 10)));
        assert!(all.is_empty() && long.unwrap_err().contains("4 MiB"));
        assert_eq!(read("[{\"a\":1}]").0, ["1/0 {\"a\":1}"]);
    }
}
