//! What differs between two states of an object: the changed paths with the value before and after.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::path::{Step, identities};

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Where.
    pub path: Vec<Step>,
    /// The value before; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; absent where it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Where in its list a removed item stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

/// The object without what the server keeps for itself. A null is no value to the API.
#[must_use]
pub(super) fn clean(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(object) = out.as_object_mut() {
        object.remove("status");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for own in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(own);
            }
        }
    }
    drop_nulls(&mut out);
    out
}

/// Annotations with which controllers count roll-outs: they follow a change some seconds later.
const COUNTERS: [&str; 2] = ["deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"];

/// Whether an object still says what it said: its controllers may have written their status and their counts since.
#[must_use]
pub fn still(then: &Value, now: &Value) -> bool {
    let wanted = |object: &Value| {
        let mut out = clean(object);
        if let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        {
            annotations.retain(|name, _| !COUNTERS.contains(&name.as_str()));
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        out
    };
    wanted(then) == wanted(now)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// All changed paths, in the order of the fields.
#[must_use]
pub fn edits(before: &Value, after: &Value) -> Vec<Edit> {
    let mut out = Vec::new();
    walk(&mut Vec::new(), "", &clean(before), &clean(after), &mut out);
    out
}

fn walk(path: &mut Vec<Step>, field: &str, before: &Value, after: &Value, out: &mut Vec<Edit>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => objects(path, before, after, out),
        (Value::Array(b), Value::Array(a)) if lists(path, field, b, a, out) => {}
        _ => push(path, Some(before), Some(after), None, out),
    }
}

fn objects(
    path: &mut Vec<Step>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    out: &mut Vec<Edit>,
) {
    let added = after.keys().filter(|k| !before.contains_key(*k));
    for key in before.keys().chain(added) {
        path.push(Step::Key(key.clone()));
        match (before.get(key), after.get(key)) {
            (Some(b), Some(a)) => walk(path, key, b, a, out),
            (b, a) => push(path, b, a, None, out),
        }
        path.pop();
    }
}

/// Compares keyed lists item by item; `false` where they are no such lists, and so differ as a whole. An order alone is
/// no difference: the API merges these lists by key.
fn lists(path: &mut Vec<Step>, field: &str, before: &[Value], after: &[Value], out: &mut Vec<Edit>) -> bool {
    let (Some(old), Some(new)) = (identities(field, before), identities(field, after)) else { return false };
    for (i, (id, item)) in old.iter().zip(before).enumerate() {
        path.push(Step::Item(id.clone()));
        match new.iter().position(|n| n == id).and_then(|at| after.get(at)) {
            Some(now) => walk(path, "", item, now, out),
            None => push(path, Some(item), None, Some(i), out),
        }
        path.pop();
    }
    for (id, item) in new.iter().zip(after).filter(|(id, _)| !old.contains(id)) {
        path.push(Step::Item(id.clone()));
        push(path, None, Some(item), None, out);
        path.pop();
    }
    true
}

fn push(
    path: &[Step],
    before: Option<&Value>,
    after: Option<&Value>,
    index: Option<usize>,
    out: &mut Vec<Edit>,
) {
    out.push(Edit { path: path.to_vec(), before: before.cloned(), after: after.cloned(), index });
}

#[cfg(test)]
mod tests {
    use super::super::path::at;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_controller_that_counts_a_roll_out_changes_nothing() {
        let shown =
            json!({"metadata": {"name": "d", "resourceVersion": "1"}, "spec": {"replicas": 1}, "status": {}});
        let counted = json!({"metadata": {"name": "d", "resourceVersion": "4", "annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"replicas": 1}, "status": {"replicas": 1}});
        assert!(still(&shown, &counted) && still(&counted, &shown));
        let noted = json!({"metadata": {"name": "d", "annotations": {"a": "b"}}, "spec": {"replicas": 1}});
        let scaled = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2}});
        assert!(!still(&shown, &noted) && !still(&shown, &scaled));
    }

    #[test]
    fn only_what_changed_is_listed() {
        let before = json!({"metadata": {"resourceVersion": "1", "generation": 1, "creationTimestamp": null}, "status": {"x": 1},
            "spec": {"containers": [{"name": "side"}, {"name": "s", "args": ["a"], "env": [{"name": "A", "value": "1"}],
                "resources": {"limits": {"memory": "1Gi"}}}]}});
        let after = json!({"metadata": {"resourceVersion": "2", "generation": 2}, "status": {"x": 2},
            "spec": {"containers": [{"name": "s", "args": ["a", "b"], "env": [{"name": "B", "value": "1"}],
                "resources": {"limits": {"memory": "2Gi"}, "requests": {"memory": "2Gi"}}}, {"name": "side"}]}});
        let edits = edits(&before, &after);
        let paths: Vec<String> = edits.iter().map(|e| at(&e.path)).collect();
        assert_eq!(
            paths,
            [
                "spec.containers[s].args",
                "spec.containers[s].env[A]",
                "spec.containers[s].env[B]",
                "spec.containers[s].resources.limits.memory",
                "spec.containers[s].resources.requests"
            ]
        );
        assert_eq!((edits[1].index, &edits[1].after), (Some(0), &None));
        assert_eq!(edits[3].before, Some(json!("1Gi")));
    }
}
