//! One value of a YAML text: all else, comments and order included, stays byte by byte.
//!
//! The text is changed as lines and then read again: where the reader does not find exactly the one value changed (flow
//! style, anchors, several documents), nothing is changed at all.

use std::ops::Range;

use dualplane_base::json::text_of;
use serde_json::{Map, Value};

/// The whole text as a value; an empty one has no settings. `None` where it is no map.
pub(super) fn read(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! { strict_booleans: true };
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Ok(Value::Null) => Some(Value::Object(Map::new())),
        Ok(map @ Value::Object(_)) => Some(map),
        _ => None,
    }
}

/// The scalar at a path of keys.
pub(super) fn value(document: &Value, path: &[&str]) -> Option<String> {
    let found = path.iter().try_fold(document, |v, key| v.get(key))?;
    (!found.is_object() && !found.is_array()).then(|| text_of(found))
}

/// The text with this value at a path, which is added where it is not there; `None` where that is not done safely.
pub(super) fn set(text: &str, path: &[&str], to: &str) -> Option<String> {
    if !to.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c)) || to.is_empty() {
        return None;
    }
    let before = read(text)?;
    let out = match (span(text, path), value(&before, path)) {
        (Some(at), Some(_)) => {
            let old = text.get(at.clone())?;
            let quote =
                old.chars().next().filter(|c| ['"', '\''].contains(c)).map(String::from).unwrap_or_default();
            format!("{}{quote}{to}{quote}{}", text.get(..at.start)?, text.get(at.end..)?)
        }
        (None, None) => added(text, &before, path, to)?,
        _ => return None,
    };
    let after = read(&out)?;
    let new = path.iter().try_fold(&after, |v, key| v.get(key))?;
    (text_of(new) == to && with(before, path, new.clone()) == after).then_some(out)
}

fn with(mut document: Value, path: &[&str], to: Value) -> Value {
    let mut at = &mut document;
    for key in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { break };
        at = map.entry(*key).or_insert(Value::Null);
    }
    *at = to;
    document
}

/// A line with a key: where it begins, how far it is indented, and the bytes of its value.
struct Line<'t> {
    end: usize,
    indent: usize,
    key: &'t str,
    value: Range<usize>,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut out = Vec::new();
    let mut start = 0;
    for whole in text.split_inclusive('\n') {
        let end = start + whole.len();
        let line = whole.trim_end();
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        if let Some((key, rest)) = body.split_once(':').filter(|(_, r)| r.is_empty() || r.starts_with(' ')) {
            let inner = rest.trim_start();
            let from = start + line.len() - inner.len();
            let key = key.trim_matches(['"', '\'']);
            if !key.is_empty() && !key.starts_with(['#', '-', '?', '{', '[']) {
                out.push(Line { end, indent, key, value: from..from + scalar(inner) });
            }
        }
        start = end;
    }
    out
}

/// Length of the scalar with which the rest of a line begins; 0 where it is only a comment.
fn scalar(rest: &str) -> usize {
    if let Some(quote) = rest.chars().next().filter(|c| ['"', '\''].contains(c)) {
        return rest.get(1..).and_then(|r| r.find(quote)).map_or(rest.len(), |i| i + 2);
    }
    if rest.starts_with('#') {
        return 0;
    }
    rest.find(" #").map_or(rest, |i| rest.get(..i).unwrap_or(rest)).trim_end().len()
}

/// Bytes of the value at a path.
fn span(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let all = lines(text);
    match path {
        [key] => all.iter().find(|l| l.indent == 0 && l.key == *key).map(|l| l.value.clone()),
        [parent, key] => below(&all, parent)?.1.iter().find(|l| l.key == *key).map(|l| l.value.clone()),
        _ => None,
    }
}

/// A key of the first level without a value on its line, and the lines of the level below it.
fn below<'l, 't>(all: &'l [Line<'t>], parent: &str) -> Option<(&'l Line<'t>, Vec<&'l Line<'t>>)> {
    let at = all.iter().position(|l| l.indent == 0 && l.key == parent && l.value.is_empty())?;
    let inner = all.get(at + 1..)?.iter().take_while(|l| l.indent > 0).collect::<Vec<_>>();
    let level = inner.first().map_or(0, |l| l.indent);
    Some((all.get(at)?, inner.into_iter().filter(|l| l.indent == level).collect()))
}

fn added(text: &str, before: &Value, path: &[&str], to: &str) -> Option<String> {
    let ended = if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    match path {
        [key] => Some(format!("{ended}{key}: {to}\n")),
        [parent, key] if before.get(parent).is_none() => Some(format!("{ended}{parent}:\n  {key}: {to}\n")),
        [parent, key] => {
            let all = lines(&ended);
            let (line, children) = below(&all, parent)?;
            let indent = children.first().map_or(2, |l| l.indent);
            let (head, tail) = ended.split_at_checked(line.end)?;
            Some(format!("{head}{:indent$}{key}: {to}\n{tail}", ""))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_changes_and_every_other_byte_stays() {
        let text = "# served by team a\nmodel: m\nmax-model-len: 8192   # see ticket: 12\nkv_cache_config:\n    dtype: fp8\n    # of the rest\n    free_gpu_memory_fraction: \"0.9\"\nurl: 'a: b'\n";
        for (path, to, want) in [
            (&["max-model-len"][..], "4096", text.replace("8192 ", "4096 ")),
            (&["kv_cache_config", "free_gpu_memory_fraction"], "0.8", text.replace("\"0.9\"", "\"0.8\"")),
            (&["kv_cache_config", "x"], "1", text.replace("    dtype", "    x: 1\n    dtype")),
            (&["max_batch_size"], "8", format!("{text}max_batch_size: 8\n")),
            (&["moe_config", "backend"], "a", format!("{text}moe_config:\n  backend: a\n")),
        ] {
            assert_eq!(set(text, path, to), Some(want), "{path:?}");
        }
        assert_eq!(set("", &["a"], "1"), Some("a: 1\n".into()));
        assert_eq!(set("a: 1", &["a"], "2"), Some("a: 2".into()));
        assert_eq!(set("a:   # later\nb: 1", &["b"], "2"), Some("a:   # later\nb: 2".into()));
    }

    #[test]
    fn what_lines_do_not_show_is_left_alone() {
        for text in [
            "{a: 1, b: 2}\n",
            "a: &x 1\nb: *x\n",
            "a: 1\n---\na: 2\n",
            "b:\n  a: 1\n  c: |\n    a: 1\n- x\n",
            "[1, 2]\n",
            "a: >\n  1\n",
        ] {
            assert_eq!(set(text, &["a"], "9"), None, "{text}");
        }
        // A text within a block is no key, and a value must be a plain word.
        assert_eq!(set("c: |\n  a: 1\na: 2\n", &["a"], "3").as_deref(), Some("c: |\n  a: 1\na: 3\n"));
        assert_eq!(set("a: 1\n", &["a"], "x: y"), None);
    }
}
