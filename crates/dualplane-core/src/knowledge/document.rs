//! Files of entries, as TOML holds them, become the one document that [`super::Knowledge`] reads. The build script uses this
//! file too, so that a team's own entries go the way of the embedded ones.

use serde_json::{Map, Value};

/// Examples and near misses of a signature, which the document leaves out: they are tests.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    /// Signature id.
    pub id: String,
    /// Lines that must hit.
    pub hits: Vec<String>,
    /// Lines that must not.
    pub misses: Vec<String>,
}

/// Adds the entries of one file, `file` being its name without the ending; returns the examples of its signatures.
pub fn add(all: &mut Map<String, Value>, doc: Value, file: &str) -> Vec<Examples> {
    let mut examples = Vec::new();
    let Value::Object(doc) = doc else { return examples };
    let engine = match doc.get("engine") {
        Some(Value::Object(head)) => head.get("id").cloned().unwrap_or(Value::Null),
        Some(name) => name.clone(),
        None => Value::Null,
    };
    for (key, value) in doc {
        let Value::Array(entries) = value else { continue };
        for mut entry in entries {
            if let Some(table) = entry.as_object_mut() {
                let hits = strings(table.remove("examples"));
                let misses = strings(table.remove("near_misses"));
                if key == "signature" {
                    table.insert("engine".into(), engine.clone());
                    table.insert("file".into(), file.into());
                    let id = table.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    examples.push(Examples { id, hits, misses });
                }
            }
            push(all, &key, entry);
        }
    }
    examples
}

/// Adds one entry.
pub fn push(all: &mut Map<String, Value>, key: &str, entry: Value) {
    if let Value::Array(into) = all.entry(key).or_insert_with(|| Value::Array(Vec::new())) {
        into.push(entry);
    }
}

fn strings(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::Array(a)) => a.into_iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}
