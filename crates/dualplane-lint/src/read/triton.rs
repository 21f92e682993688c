//! Triton's `config.pbtxt`: the text form of protocol buffers as a value.

use serde_json::{Map, Value};

use crate::finding::Source;
use crate::object::{Object, TRITON};

/// Messages within messages.
const MAX_DEPTH: usize = 30;

/// The configuration as an object.
pub(super) fn object(value: Value, source: Source) -> Object {
    let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
    // Triton takes the folder's name where the file says none.
    let folder = source.file.rsplit('/').nth(1).unwrap_or_default().to_owned();
    let mut object = Object::new(value, source);
    object.kind = TRITON.to_owned();
    object.name = name.unwrap_or(folder);
    object
}

/// Fields that are lists, however often they stand.
const LISTS: [&str; 5] = ["instance_group", "input", "output", "gpus", "parameters"];

/// Reads it; an error has its line, from 1.
pub(super) fn read(text: &str) -> Result<Value, (u64, String)> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let map = reader.message(None, 0)?;
    Ok(map.into())
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: u64,
}

impl Reader<'_> {
    fn fail<T>(&self, why: impl Into<String>) -> Result<T, (u64, String)> {
        Err((self.line, why.into()))
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next();
        self.line += u64::from(c == Some('\n'));
        c
    }

    /// The next character that is neither blank nor comment nor an optional comma.
    fn peek(&mut self) -> Option<char> {
        loop {
            match self.rest.peek() {
                Some('#') => while self.next().is_some_and(|c| c != '\n') {},
                Some(c) if c.is_whitespace() || matches!(c, ',' | ';') => {
                    self.next();
                }
                other => return other.copied(),
            }
        }
    }

    fn message(&mut self, end: Option<char>, depth: usize) -> Result<Map<String, Value>, (u64, String)> {
        if depth > MAX_DEPTH {
            return self.fail("messages are nested too deep");
        }
        let mut map = Map::new();
        loop {
            match self.peek() {
                None if end.is_none() => return Ok(map),
                None => return self.fail("the text ends within a message"),
                c if c == end => {
                    self.next();
                    return Ok(map);
                }
                Some(c) if c.is_alphanumeric() || c == '_' => {}
                Some(c) => return self.fail(format!("a field's name was expected, found `{c}`")),
            }
            let name = self.word();
            if self.peek() == Some(':') {
                self.next();
            }
            let value = self.value(depth)?;
            add(&mut map, name, value);
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, (u64, String)> {
        Ok(match self.peek() {
            Some('{') => {
                self.next();
                self.message(Some('}'), depth + 1)?.into()
            }
            Some('<') => {
                self.next();
                self.message(Some('>'), depth + 1)?.into()
            }
            Some('[') => {
                self.next();
                if depth > MAX_DEPTH {
                    return self.fail("messages are nested too deep");
                }
                let mut items = Vec::new();
                while self.peek().is_some_and(|c| c != ']') {
                    items.push(self.value(depth + 1)?);
                }
                if self.next().is_none() {
                    return self.fail("the text ends within a list");
                }
                items.into()
            }
            Some(q @ ('"' | '\'')) => {
                self.next();
                let mut text = String::new();
                loop {
                    match self.next() {
                        Some('\\') => text.extend(self.next()),
                        Some(c) if c == q => break text.into(),
                        Some(c) => text.push(c),
                        None => return self.fail("the text ends within quotes"),
                    }
                }
            }
            Some(c) if c.is_alphanumeric() || matches!(c, '-' | '+' | '.' | '_') => {
                let word = self.word();
                if let Ok(n) = word.parse::<i64>() {
                    n.into()
                } else if let Ok(f) = word.parse::<f64>() {
                    f.into()
                } else {
                    match word.as_str() {
                        "true" => true.into(),
                        "false" => false.into(),
                        _ => word.into(),
                    }
                }
            }
            Some(c) => return self.fail(format!("a value was expected, found `{c}`")),
            None => return self.fail("a value was expected at the end"),
        })
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.')) {
            word.push(c);
        }
        word
    }
}

fn add(map: &mut Map<String, Value>, name: String, value: Value) {
    let list = LISTS.contains(&name.as_str());
    let items = match value {
        Value::Array(items) => items,
        other if list => vec![other],
        other => {
            map.insert(name, other);
            return;
        }
    };
    match map.get_mut(&name) {
        Some(Value::Array(all)) => all.extend(items),
        _ => {
            map.insert(name, items.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_protocol_buffers() {
        let v = read("name: \"m\" # a\nmax_batch_size: 8\ninstance_group [ { count: 2 kind: KIND_GPU gpus: [0, 1] } ]\ndynamic_batching { preferred_batch_size: [4, 8] }\n").unwrap();
        assert_eq!(v["instance_group"][0]["count"], 2);
        assert_eq!(v["instance_group"][0]["kind"], "KIND_GPU");
        assert_eq!(v["instance_group"][0]["gpus"][1], 1);
        assert_eq!(v["dynamic_batching"]["preferred_batch_size"][0], 4);
        for (bad, line) in [("a {", 1), ("a: 1\n}", 2), ("a: \"x", 1), ("a: [1", 1), ("\na: @", 2), ("a:", 1)]
        {
            assert_eq!(read(bad).unwrap_err().0, line, "{bad}");
        }
        assert!(read(&"a {".repeat(5000)).is_err());
        assert!(read(&"a [".repeat(5000)).is_err() && read(&format!("a: {}", "[".repeat(5000))).is_err());
    }
}
