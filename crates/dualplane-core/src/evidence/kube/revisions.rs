//! What changed: the last two revisions of a workload, as `capture` keeps them (`dualplane.revisions/v1`).
//!
//! A pod template is compared field by field: containers, variables and volumes by name, arguments flag by flag, so
//! that a moved line is no change.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::evidence::Gap;
use crate::time::{Stamp, parse_rfc3339};

/// Schema of the file.
pub(in crate::evidence) const SCHEMA: &str = "dualplane.revisions/v1";
/// Leaves of one template; a pod spec has some hundred.
const MAX_LEAVES: usize = 5000;
/// Changes that are kept.
const MAX_CHANGES: usize = 200;
/// A value is shown up to here.
const MAX_VALUE: usize = 300;

/// A roll-out and what it changed.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// File.
    pub file: String,
    /// `deployment/NAME`.
    pub workload: String,
    /// Revision before.
    pub from: i64,
    /// Revision of the pod.
    pub to: i64,
    /// When the pod's revision was made.
    pub at: Option<Stamp>,
    /// What differs, by container and field.
    pub changes: Vec<Change>,
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Container; none for the pod's own fields.
    pub container: Option<String>,
    /// `resources.limits.memory`, `--max-model-len`, `env HF_HOME`, `image`.
    pub field: String,
    /// Value before; none where the field is new.
    pub before: Option<String>,
    /// Value now; none where the field is gone.
    pub after: Option<String>,
}

impl Change {
    /// `64Gi → 48Gi`, `added 8192`, `removed (was 4)`.
    #[must_use]
    pub fn how(&self) -> String {
        match (&self.before, &self.after) {
            (Some(b), Some(a)) => format!("{b} → {a}"),
            (None, Some(a)) if a.is_empty() => "added".into(),
            (None, Some(a)) => format!("added: {a}"),
            (Some(b), None) if b.is_empty() => "removed".into(),
            (Some(b), None) => format!("removed (was {b})"),
            (None, None) => String::new(),
        }
    }
}

/// Reads the file.
pub(in crate::evidence) fn read(value: &Value, file: &str) -> Result<Rollout, Gap> {
    let odd = || Gap {
        what: file.to_owned(),
        why: format!("it claims to be {SCHEMA} but does not contain two revisions"),
        command: None,
    };
    let revisions = value.get("revisions").and_then(Value::as_array).ok_or_else(odd)?;
    let [old, new] = revisions.as_slice() else { return Err(odd()) };
    let number = |r: &Value| r.get("revision").and_then(Value::as_i64).unwrap_or(0);
    let (before, after) = (leaves(old.get("template")), leaves(new.get("template")));
    let mut changes: Vec<Change> = before
        .keys()
        .chain(after.keys().filter(|k| !before.contains_key(*k)))
        .filter(|k| before.get(*k) != after.get(*k))
        .map(|(container, field)| {
            let key = (container.clone(), field.clone());
            Change {
                container: (!container.is_empty()).then(|| container.clone()),
                field: field.clone(),
                before: before.get(&key).cloned(),
                after: after.get(&key).cloned(),
            }
        })
        .collect();
    changes.order_by(|a, b| (&a.container, &a.field).cmp(&(&b.container, &b.field)));
    changes.truncate(MAX_CHANGES);
    let created = new.get("created").and_then(Value::as_str);
    Ok(Rollout {
        file: file.to_owned(),
        workload: value.get("workload").and_then(Value::as_str).unwrap_or_default().to_owned(),
        from: number(old),
        to: number(new),
        at: created.and_then(parse_rfc3339),
        changes,
    })
}

/// Fields of a template with their values, by container.
type Leaves = BTreeMap<(String, String), String>;

fn leaves(template: Option<&Value>) -> Leaves {
    let mut out = Leaves::new();
    let Some(template) = template else { return out };
    for list in ["initContainers", "containers"] {
        for c in template.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten() {
            let name = c.get("name").and_then(Value::as_str).unwrap_or_default();
            container(&mut out, name, c);
        }
    }
    for (key, value) in template.get("spec").and_then(Value::as_object).into_iter().flatten() {
        if !matches!(key.as_str(), "containers" | "initContainers") {
            flatten(&mut out, "", key, value, 0);
        }
    }
    for what in ["annotations", "labels"] {
        for (key, value) in
            template.pointer(&format!("/metadata/{what}")).and_then(Value::as_object).into_iter().flatten()
        {
            // The controller's own mark differs by its nature.
            if key != "pod-template-hash" && key != "controller-revision-hash" {
                put(&mut out, "", format!("{what} {key}"), value.as_str().unwrap_or_default());
            }
        }
    }
    out
}

fn container(out: &mut Leaves, name: &str, c: &Value) {
    for (key, value) in c.as_object().into_iter().flatten() {
        match key.as_str() {
            "name" => {}
            "env" => {
                for e in value.as_array().into_iter().flatten() {
                    let variable = e.get("name").and_then(Value::as_str).unwrap_or_default();
                    let said = match e.get("value").and_then(Value::as_str) {
                        Some(v) => v.to_owned(),
                        None => e.get("valueFrom").map(Value::to_string).unwrap_or_default(),
                    };
                    put(out, name, format!("env {variable}"), &said);
                }
            }
            "command" | "args" => words(out, name, key, value),
            _ => flatten(out, name, key, value, 0),
        }
    }
}

/// A command line, flag by flag; what is no flag, together.
fn words(out: &mut Leaves, container: &str, key: &str, value: &Value) {
    let all: Vec<String> = value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        // A shell's script is a command line of its own.
        .flat_map(|w| {
            if w.contains(char::is_whitespace) {
                w.split_whitespace().map(str::to_owned).collect()
            } else {
                vec![w.to_owned()]
            }
        })
        .collect();
    let is_flag = |w: &str| {
        w.strip_prefix('-')
            .is_some_and(|r| r.trim_start_matches('-').starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let mut rest = Vec::new();
    let mut words = all.iter().peekable();
    while let Some(word) = words.next() {
        if !is_flag(word) {
            rest.push(word.as_str());
            continue;
        }
        if let Some((flag, value)) = word.split_once('=') {
            put(out, container, flag.to_owned(), value);
            continue;
        }
        let value = words.next_if(|w| !is_flag(w)).map(String::as_str).unwrap_or_default();
        put(out, container, word.clone(), value);
    }
    if !rest.is_empty() {
        put(out, container, key.to_owned(), &rest.join(" "));
    }
}

fn flatten(out: &mut Leaves, container: &str, path: &str, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if depth < 12 => {
            for (key, value) in map {
                flatten(out, container, &format!("{path}.{key}"), value, depth + 1);
            }
        }
        Value::Array(items) if depth < 12 => {
            for (i, item) in items.iter().enumerate() {
                let key = ["name", "mountPath", "containerPort", "key", "topologyKey"]
                    .iter()
                    .find_map(|k| item.get(k))
                    .map_or_else(
                        || i.to_string(),
                        |k| k.as_str().map_or_else(|| k.to_string(), str::to_owned),
                    );
                flatten(out, container, &format!("{path}[{key}]"), item, depth + 1);
            }
        }
        Value::String(s) => put(out, container, path.to_owned(), s),
        other => put(out, container, path.to_owned(), &other.to_string()),
    }
}

fn put(out: &mut Leaves, container: &str, field: String, value: &str) {
    if out.len() < MAX_LEAVES {
        out.insert((container.to_owned(), field), crate::text::shorten(value, MAX_VALUE).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rollout_is_told_field_by_field() {
        let template = |limit: &str, len: &str, image: &str| {
            json!({"metadata": {"labels": {"pod-template-hash": image}}, "spec": {"containers": [
                {"name": "vllm", "image": image, "args": ["serve", "m", "--max-model-len", len, "--enforce-eager"],
                 "env": [{"name": "A", "value": "1"}], "resources": {"limits": {"memory": limit}}},
                {"name": "sidecar", "image": "x"}]}})
        };
        let mut new = template("48Gi", "32768", "v2");
        new["spec"]["containers"].as_array_mut().unwrap().reverse();
        let value = json!({"schema": SCHEMA, "workload": "deployment/a", "revisions": [
            {"revision": 4, "created": "2026-11-21T10:00:00Z", "template": template("64Gi", "8192", "v1")},
            {"revision": 5, "created": "2026-11-21T12:00:00Z", "template": new}]});
        let rollout = read(&value, "revisions.json").unwrap();
        let told: Vec<String> = rollout.changes.iter().map(|c| format!("{} {}", c.field, c.how())).collect();
        assert_eq!(
            told,
            ["--max-model-len 8192 → 32768", "image v1 → v2", "resources.limits.memory 64Gi → 48Gi"]
        );
        assert_eq!((rollout.from, rollout.to), (4, 5));
    }

    #[test]
    fn odd_files_are_gaps() {
        assert!(read(&json!({"schema": SCHEMA}), "f").is_err());
        assert!(read(&json!({"schema": SCHEMA, "revisions": [{}, {}]}), "f").is_ok());
    }
}
