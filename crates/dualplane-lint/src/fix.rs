//! Fixes as changes of the text: one value is replaced, or one line is added. Comments, order and every other byte stay.
//!
//! The new text is read again: where it does not hold exactly the one value changed, nothing is changed.

use dualplane_base::order::Order as _;
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
    if let Some(text) = together(text, edits) {
        return Patched { text, done: (0..edits.len()).collect() };
    }
    let mut out = Patched { text: text.to_owned(), done: Vec::new() };
    for (i, edit) in edits.iter().enumerate() {
        if let Some(text) = one(&out.text, edit) {
            out.text = text;
            out.done.push(i);
        }
    }
    out
}

/// All edits at once, where each can be made and none needs another: a list of a whole namespace is read three times then, and not
/// three times for each edit.
fn together(text: &str, edits: &[Edit]) -> Option<String> {
    let mut want = read(text)?;
    let locator = Locator::new(text);
    let mut changes = Vec::with_capacity(edits.len());
    for edit in edits {
        changes.push(change(text, &locator, edit)?);
        set(&mut want, &edit.pointer, &edit.value)?;
    }
    changes.order_by_key(|(at, _)| at.start);
    let mut new = String::with_capacity(text.len() + changes.len() * 32);
    let mut from = 0;
    for (at, value) in changes {
        // None where two changes meet.
        new.push_str(text.get(from..at.start)?);
        new.push_str(&value);
        from = at.end;
    }
    new.push_str(text.get(from..)?);
    (read(&new)? == want).then_some(new)
}

fn read(text: &str) -> Option<Value> {
    serde_saphyr::from_str_with_options(text, crate::yaml::options()).ok()
}

fn one(text: &str, edit: &Edit) -> Option<String> {
    let before = read(text)?;
    let (at, value) = change(text, &Locator::new(text), edit)?;
    let mut new = text.to_owned();
    new.replace_range(at, &value);
    // Exactly this value is another one now.
    let mut want = before;
    set(&mut want, &edit.pointer, &edit.value)?;
    (read(&new)? == want).then_some(new)
}

/// What an edit puts where.
fn change(text: &str, locator: &Locator, edit: &Edit) -> Option<(Range<usize>, String)> {
    let value = plain(&edit.value)?;
    match locator.node(&edit.pointer) {
        Some(node) if matches!(node.value, Node::Scalar) => {
            let at = spot(node).bytes?;
            Some((at.clone(), replace(text.get(at)?, &value)?))
        }
        Some(_) => None,
        None => add(text, locator, &edit.pointer, &value),
    }
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

fn replace(old: &str, value: &str) -> Option<String> {
    if old.contains('\n') || old.starts_with(['&', '*', '!', '|', '>']) {
        return None;
    }
    let quote = old.chars().next().filter(|c| ['"', '\''].contains(c));
    Some(match quote {
        Some(q) if !value.starts_with('"') => format!("{q}{value}{q}"),
        _ => value.to_owned(),
    })
}

/// Adds what is missing of a path below the deepest map that is there.
fn add(text: &str, locator: &Locator, pointer: &str, value: &str) -> Option<(Range<usize>, String)> {
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
        return Some((start..start, lines + &pad));
    }
    // Flow style: `{` stands before the first key.
    let open = before.trim_end().ends_with('{');
    open.then(|| {
        let (last, outer) = missing.split_last()?;
        let inner =
            outer.iter().rev().fold(format!("{last}: {value}"), |inner, k| format!("{k}: {{{inner}}}"));
        Some((start..start, format!("{inner}, ")))
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
    fn edits_together_are_the_edits_one_by_one() {
        let edit = |pointer: &str, value: Value| Edit { pointer: pointer.into(), value };
        let memory = edit("/spec/containers/0/resources/limits/memory", json!("24Gi"));
        let other = edit("/spec/containers/1/resources/limits/memory", json!("2Gi"));
        let grace = edit("/spec/terminationGracePeriodSeconds", json!(90));
        let probe = edit("/spec/containers/0/startupProbe/periodSeconds", json!(5));
        let failures = edit("/spec/containers/0/startupProbe/failureThreshold", json!(60));
        let never = edit("/spec/containers/7/name", json!("x"));
        for (edits, at_once) in [
            (vec![memory.clone(), other.clone(), grace.clone(), probe.clone()], true),
            (vec![grace.clone(), memory.clone()], true),
            // Both would add their parent, one value twice, and one that cannot be made.
            (vec![probe, failures], false),
            (vec![memory.clone(), edit(&memory.pointer, json!("25Gi"))], false),
            (vec![other, never, grace], false),
        ] {
            let one_by_one = edits.iter().fold(TEXT.to_owned(), |t, e| one(&t, e).unwrap_or(t));
            let p = fix(TEXT, &edits);
            assert_eq!(read(&p.text), read(&one_by_one), "{edits:?}");
            assert_eq!(together(TEXT, &edits).is_some(), at_once, "{edits:?}");
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
