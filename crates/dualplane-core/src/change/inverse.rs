//! The way back: a JSON patch that restores the values before a change, and tests that they are still the ones it left.

use serde_json::{Value, json};

use super::diff::Edit;
use super::path::{Step, at, escape, is_item};

/// What becomes of a value that someone else changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It stops the whole way back.
    Refuse,
    /// It stays as it is; the rest goes back.
    Keep,
    /// It goes back as well.
    Overwrite,
}

/// A value that is not what the change left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs {
    /// Where.
    pub path: Vec<Step>,
    /// What the change left; `None` where it removed it.
    pub left: Option<Value>,
    /// What is there now; `None` where there is nothing.
    pub now: Option<Value>,
}

/// A way back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inverse {
    /// JSON patch; empty where nothing is to be done.
    pub operations: Vec<Value>,
    /// What stands against it, or was kept or overwritten, as the policy says.
    pub differs: Vec<Differs>,
    /// Paths that already hold their value of before.
    pub already: usize,
}

/// Computes the way back against the live object. Items are found by their keys; each operation stands behind tests of
/// those keys and of the value that it replaces, so that the server refuses what changed in between.
#[must_use]
pub fn inverse(edits: &[Edit], live: &Value, policy: Policy) -> Inverse {
    let mut out = Inverse::default();
    // Each operation sees what those before it did; so does the search for the next one's index.
    let mut work = live.clone();
    for edit in edits.iter().rev() {
        one(edit, &mut work, policy, &mut out);
    }
    out
}

fn one(edit: &Edit, work: &mut Value, policy: Policy, out: &mut Inverse) {
    let mut tests = Vec::new();
    let now = find(&edit.path, work, &mut tests);
    let value = now.as_deref().and_then(|p| work.pointer(p)).cloned();
    if value == edit.before {
        out.already += 1;
        return;
    }
    if value != edit.after {
        let differs = Differs { path: edit.path.clone(), left: edit.after.clone(), now: value.clone() };
        out.differs.push(differs);
        if policy != Policy::Overwrite {
            return;
        }
    }
    let operation = match (&edit.before, now, value) {
        (Some(before), Some(pointer), Some(value)) => {
            tests.push(json!({"op": "test", "path": pointer, "value": value}));
            json!({"op": "replace", "path": pointer, "value": before})
        }
        (None, Some(pointer), Some(value)) => {
            tests.push(json!({"op": "test", "path": pointer, "value": value}));
            json!({"op": "remove", "path": pointer})
        }
        (Some(before), _, _) => {
            tests.clear();
            match put_back(edit, before, work, &mut tests) {
                Some(operation) => operation,
                // What it was part of is gone: there is nowhere to put it.
                None => {
                    if !out.differs.iter().any(|d| d.path == edit.path) {
                        let path = edit.path.clone();
                        out.differs.push(Differs { path, left: edit.after.clone(), now: None });
                    }
                    return;
                }
            }
        }
        (None, _, _) => return,
    };
    carry_out(&operation, work);
    out.operations.append(&mut tests);
    out.operations.push(operation);
}

/// Adds what the change removed.
fn put_back(edit: &Edit, before: &Value, work: &Value, tests: &mut Vec<Value>) -> Option<Value> {
    let (last, parents) = edit.path.split_last()?;
    let parent = find(parents, work, tests);
    match last {
        Step::Key(key) => {
            let path = format!("{}/{}", parent?, escape(key));
            Some(json!({"op": "add", "path": path, "value": before}))
        }
        Step::Item(_) => match parent.as_deref().and_then(|p| work.pointer(p)) {
            Some(list) => {
                let at = edit.index.unwrap_or(usize::MAX).min(list.as_array()?.len());
                Some(json!({"op": "add", "path": format!("{}/{at}", parent?), "value": before}))
            }
            // The list became empty, and an empty list is none.
            None => {
                let (Step::Key(list), above) = parents.split_last()? else { return None };
                tests.clear();
                let path = format!("{}/{}", find(above, work, tests)?, escape(list));
                Some(json!({"op": "add", "path": path, "value": [before]}))
            }
        },
    }
}

/// The JSON pointer of a path in an object, with tests of the keys of items on its way.
fn find(path: &[Step], object: &Value, tests: &mut Vec<Value>) -> Option<String> {
    let mut pointer = String::new();
    let mut at = object;
    for step in path {
        match step {
            Step::Key(key) => {
                at = at.get(key)?;
                pointer.push('/');
                pointer.push_str(&escape(key));
            }
            Step::Item(id) => {
                let (i, item) = at.as_array()?.iter().enumerate().find(|(_, item)| is_item(id, item))?;
                at = item;
                pointer.push('/');
                pointer.push_str(&i.to_string());
                for (key, value) in id {
                    let path = format!("{pointer}/{}", escape(key));
                    tests.push(json!({"op": "test", "path": path, "value": value}));
                }
            }
        }
    }
    Some(pointer)
}

/// Does to the copy what the server will do.
fn carry_out(operation: &Value, work: &mut Value) {
    let text = |key: &str| operation.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let value = operation.get("value").cloned().unwrap_or_default();
    let path = text("path");
    let Some((parent, last)) = path.rsplit_once('/') else { return };
    let remove = text("op") == "remove";
    match work.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            let key = last.replace("~1", "/").replace("~0", "~");
            if remove {
                map.remove(&key);
            } else {
                map.insert(key, value);
            }
        }
        Some(Value::Array(items)) => match last.parse::<usize>() {
            Ok(i) if remove && i < items.len() => drop(items.remove(i)),
            Ok(i) if text("op") == "add" && i <= items.len() => items.insert(i, value),
            Ok(i) => {
                if let Some(item) = items.get_mut(i) {
                    *item = value;
                }
            }
            Err(_) => {}
        },
        _ => {}
    }
}

impl Differs {
    /// One line for people; values are for the caller to mask.
    #[must_use]
    pub fn place(&self) -> String {
        at(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::diff::edits;
    use super::*;

    fn before() -> Value {
        json!({"spec": {"containers": [
            {"name": "s", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "resources": {"limits": {"memory": "1Gi"}}},
            {"name": "side", "env": [{"name": "X", "value": "x"}]}]}})
    }

    fn after() -> Value {
        json!({"spec": {"containers": [
            {"name": "s", "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}], "resources": {"limits": {"memory": "2Gi"}, "requests": {"memory": "2Gi"}}},
            {"name": "side"}]}})
    }

    /// Carries a JSON patch out, tests and all.
    fn run(operations: &[Value], live: &Value) -> Option<Value> {
        let mut work = live.clone();
        for o in operations {
            let path = o["path"].as_str().unwrap();
            if o["op"] == "test" {
                (work.pointer(path) == Some(&o["value"])).then_some(())?;
            } else {
                carry_out(o, &mut work);
            }
        }
        Some(work)
    }

    #[test]
    fn a_change_and_its_way_back_cancel_out() {
        let way = inverse(&edits(&before(), &after()), &after(), Policy::Refuse);
        assert!(way.differs.is_empty());
        assert_eq!(run(&way.operations, &after()), Some(before()));
        let again = inverse(&edits(&before(), &after()), &before(), Policy::Refuse);
        assert!(again.operations.is_empty() && again.already == 5, "{again:?}");
    }

    #[test]
    fn a_shifted_list_is_found_by_its_keys() {
        let mut live = after();
        live["spec"]["containers"].as_array_mut().unwrap().insert(0, json!({"name": "mesh"}));
        let way = inverse(&edits(&before(), &after()), &live, Policy::Refuse);
        let back = run(&way.operations, &live).unwrap();
        assert_eq!(back["spec"]["containers"][0], json!({"name": "mesh"}));
        assert_eq!(back["spec"]["containers"][1], before()["spec"]["containers"][0]);
        // The server refuses the patch on a list that shifted after it was computed.
        live["spec"]["containers"].as_array_mut().unwrap().remove(0);
        assert_eq!(run(&way.operations, &live), None);
    }

    #[test]
    fn what_someone_else_changed_is_kept_unless_forced() {
        let edits = edits(&before(), &after());
        let mut live = after();
        let limit = "/spec/containers/0/resources/limits/memory";
        *live.pointer_mut(limit).unwrap() = json!("9Gi");
        let way = inverse(&edits, &live, Policy::Refuse);
        assert_eq!(way.differs.len(), 1);
        assert_eq!(way.differs[0].now, Some(json!("9Gi")));
        assert_eq!(way.differs[0].place(), "spec.containers[s].resources.limits.memory");
        let kept = run(&inverse(&edits, &live, Policy::Keep).operations, &live).unwrap();
        assert_eq!(kept.pointer(limit), Some(&json!("9Gi")));
        assert_eq!(kept.pointer("/spec/containers/0/resources/requests"), None);
        let forced = run(&inverse(&edits, &live, Policy::Overwrite).operations, &live).unwrap();
        assert_eq!(forced, before());
    }

    #[test]
    fn what_is_gone_cannot_go_back() {
        let live = json!({"spec": {"containers": [{"name": "side"}]}});
        let way = inverse(&edits(&before(), &after()), &live, Policy::Overwrite);
        assert!(
            way.differs.iter().any(|d| d.place().ends_with("limits.memory") && d.now.is_none()),
            "{way:?}"
        );
        let back = run(&way.operations, &live).unwrap();
        assert_eq!(back["spec"]["containers"][0], before()["spec"]["containers"][1]);
    }
}
