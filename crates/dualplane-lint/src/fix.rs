//! Fixes as changes of the text: one value is replaced, or one line is added. Comments, order and every other byte stay.
//!
//! The new text is read again: where it does not hold exactly the one value changed, nothing is changed.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::finding::Edit;
use crate::place::{Locator, Node, spot};

/// A text with its fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    /// The new text.
    pub text: String,
    /// Edits that were made, by their index.
    pub done: Vec<usize>,
}

/// The text of one document with these edits, as far as each can be made safely.
#[must_use]
pub fn fix(text: &str, edits: &[Edit]) -> Patched {
    let mut out = Patched { text: text.to_owned(), done: Vec::new() };
    for (i, edit) in edits.iter().enumerate() {
        if let Some(text) = one(&out.text, edit) {
            out.text = text;
            out.done.push(i);
        }
    }
    out
}

fn read(text: &str) -> Option<Value> {
    serde_saphyr::from_str_with_options(text, crate::yaml::options()).ok()
}

fn one(text: &str, edit: &Edit) -> Option<String> {
    let value = plain(&edit.value)?;
    let before = read(text)?;
    let locator = Locator::new(text);
    let new = match locator.node(&edit.pointer) {
        Some(node) if matches!(node.value, Node::Scalar) => replace(text, spot(node).bytes?, &value)?,
        Some(_) => return None,
        None => add(text, &locator, &edit.pointer, &value)?,
    };
    // Exactly this value is another one now.
    let mut want = before;
    set(&mut want, &edit.pointer, &edit.value)?;
    (read(&new)? == want).then_some(new)
}

/// A value that is the same without quotes.
fn plain(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(s) => s.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return None,
    };
    let safe = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/=".contains(c));
    let number = value.is_string()
        && (text.parse::<f64>().is_ok() || matches!(text.as_str(), "true" | "false" | "null"));
    safe.then(|| if number { format!("\"{text}\"") } else { text })
}

fn replace(text: &str, at: Range<usize>, value: &str) -> Option<String> {
    let old = text.get(at.clone())?;
    if old.contains('\n') || old.starts_with(['&', '*', '!', '|', '>']) {
        return None;
    }
    let quote = old.chars().next().filter(|c| ['"', '\''].contains(c));
    let value = match quote {
        Some(q) if !value.starts_with('"') => format!("{q}{value}{q}"),
        _ => value.to_owned(),
    };
    Some(format!("{}{value}{}", text.get(..at.start)?, text.get(at.end..)?))
}

/// Adds what is missing of a path below the deepest map that is there.
fn add(text: &str, locator: &Locator, pointer: &str, value: &str) -> Option<String> {
    let mut there = pointer.to_owned();
    let mut missing: Vec<String> = Vec::new();
    let pairs = loop {
        let (parent, last) = there.rsplit_once('/')?;
        missing.insert(0, last.replace("~1", "/").replace("~0", "~"));
        there = parent.to_owned();
        match locator.node(&there) {
            Some(node) => match &node.value {
                Node::Map(pairs) if !pairs.is_empty() => break pairs,
                _ => return None,
            },
            None => continue,
        }
    };
    let simple = |k: &String| k.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    // An index would be an item of a list that is not there.
    if missing.iter().any(|k| !simple(k) || k.parse::<u64>().is_ok()) {
        return None;
    }
    let (first, _) = pairs.first()?;
    let first = spot(first);
    let start = first.bytes.as_ref()?.start;
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |i| i + 1);
    let before = text.get(line_start..start)?;
    if before.chars().all(|c| c == ' ' || c == '-') {
        // Block style: a line of its own before the first key, as deep as that.
        let pad = " ".repeat(before.chars().count());
        let mut lines = String::new();
        for (i, key) in missing.iter().enumerate() {
            let deep = "  ".repeat(i);
            let end = if i + 1 == missing.len() { format!(" {value}") } else { String::new() };
            let lead = if lines.is_empty() { String::new() } else { pad.clone() };
            lines.push_str(&format!("{lead}{deep}{key}:{end}\n"));
        }
        return Some(format!("{}{lines}{pad}{}", text.get(..start)?, text.get(start..)?));
    }
    // Flow style: `{` stands before the first key.
    let open = before.trim_end().ends_with('{');
    open.then(|| {
        let (last, outer) = missing.split_last()?;
        let inner =
            outer.iter().rev().fold(format!("{last}: {value}"), |inner, k| format!("{k}: {{{inner}}}"));
        Some(format!("{}{inner}, {}", text.get(..start)?, text.get(start..)?))
    })?
}

/// The same change of the value.
fn set(value: &mut Value, pointer: &str, to: &Value) -> Option<()> {
    let mut at = value;
    for step in crate::place::steps(pointer) {
        at = match at {
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?)?,
            Value::Object(map) => map.entry(step).or_insert_with(|| Value::Object(Map::new())),
            _ => return None,
        };
    }
    *at = to.clone();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = "# ours\nkind: Pod\nspec:\n  containers:\n  # the server\n  - name: a   # first\n    resources:\n      limits:\n        memory: \"8Gi\" # small\n  - {name: b, resources: {limits: {memory: 1Gi}}}\n";

    fn with(pointer: &str, value: Value) -> Option<String> {
        let p = fix(TEXT, &[Edit { pointer: pointer.into(), value }]);
        (!p.done.is_empty()).then_some(p.text)
    }

    #[test]
    fn one_value_changes_and_every_other_byte_stays() {
        for (pointer, value, want) in [
            ("/spec/containers/0/resources/limits/memory", json!("24Gi"), TEXT.replace("8Gi", "24Gi")),
            ("/spec/containers/1/resources/limits/memory", json!("2Gi"), TEXT.replace("1Gi", "2Gi")),
            (
                "/spec/containers/0/resources/requests/memory",
                json!("9Gi"),
                TEXT.replace("      limits:\n", "      requests:\n        memory: 9Gi\n      limits:\n"),
            ),
            (
                "/spec/containers/1/resources/requests/memory",
                json!("9Gi"),
                TEXT.replace("{limits: {memory: 1Gi", "{requests: {memory: 9Gi}, limits: {memory: 1Gi"),
            ),
            (
                "/spec/terminationGracePeriodSeconds",
                json!(90),
                TEXT.replace("  containers:", "  terminationGracePeriodSeconds: 90\n  containers:"),
            ),
            (
                "/spec/containers/0/startupProbe/periodSeconds",
                json!(5),
                TEXT.replace("- name: a ", "- startupProbe:\n      periodSeconds: 5\n    name: a "),
            ),
        ] {
            assert_eq!(with(pointer, value), Some(want), "{pointer}");
        }
    }

    #[test]
    fn what_is_not_done_safely_is_not_done() {
        for (pointer, value) in [
            ("/spec/containers/0", json!("x")),
            ("/spec/containers/5/name", json!("x")),
            ("/spec/x", json!("a: b")),
            ("/spec/x", json!({"a": 1})),
            ("/kind/x", json!(1)),
        ] {
            assert_eq!(with(pointer, value), None, "{pointer}");
        }
        let alias = "a: &x {memory: 1Gi}\nb: *x\n";
        let edit = Edit { pointer: "/b/memory".into(), value: json!("2Gi") };
        assert!(fix(alias, &[edit]).done.is_empty());
    }
}
