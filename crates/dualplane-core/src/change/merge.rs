//! Strategic merge for kinds whose server has none: custom resources take merge patches, which replace whole lists.

use serde_json::{Map, Value};

use super::path::{identities, identity, is_item, keys};

/// The object as it will be: keyed lists merge by their key, other lists are replaced, null removes.
#[must_use]
pub fn strategic(live: &Value, patch: &Value) -> Value {
    merged("", live, patch)
}

fn merged(field: &str, live: &Value, patch: &Value) -> Value {
    match (live, patch) {
        (Value::Object(live), Value::Object(patch)) => {
            let mut out = live.clone();
            for (key, value) in patch.iter().filter(|(k, _)| !k.starts_with('$')) {
                if value.is_null() {
                    out.remove(key);
                } else {
                    let now = live.get(key).unwrap_or(&Value::Null);
                    out.insert(key.clone(), merged(key, now, value));
                }
            }
            Value::Object(out)
        }
        (Value::Array(live), Value::Array(patch)) if identities(field, live).is_some() => {
            list(keys(field).unwrap_or_default(), live, patch)
        }
        // Nulls inside of something new mean nothing.
        (_, Value::Object(patch)) => merged(field, &Value::Object(Map::new()), &Value::Object(patch.clone())),
        (_, patch) => patch.clone(),
    }
}

fn list(keys: &[&str], live: &[Value], patch: &[Value]) -> Value {
    let mut out = live.to_vec();
    for item in patch {
        let id = identity(keys, item);
        let at = id.as_ref().and_then(|id| out.iter().position(|o| is_item(id, o)));
        let delete = item.get("$patch").and_then(Value::as_str) == Some("delete");
        match at {
            Some(i) if delete => drop(out.remove(i)),
            Some(i) => {
                if let Some(slot) = out.get_mut(i) {
                    *slot = merged("", slot, item);
                }
            }
            None if !delete => out.push(item.clone()),
            None => {}
        }
    }
    Value::Array(out)
}

/// The merge patch (RFC 7386) that leads from one state to another.
#[must_use]
pub fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
    let mut out = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(now) if now == value => {}
            Some(now) => drop(out.insert(key.clone(), merge_patch(now, value))),
            None => drop(out.insert(key.clone(), value.clone())),
        }
    }
    for key in old.keys().filter(|k| !new.contains_key(*k)) {
        out.insert(key.clone(), Value::Null);
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn other_containers_are_not_dropped() {
        let live = json!({"spec": {"size": 2, "containers": [{"name": "side", "image": "x"},
            {"name": "a", "env": [{"name": "E", "value": "1"}], "args": ["x"]}]}});
        let patch = json!({"spec": {"containers": [
            {"name": "a", "env": [{"name": "F", "value": "2"}], "args": ["y"], "resources": {"limits": {"memory": "1Gi"}}}]}});
        let to = strategic(&live, &patch);
        assert_eq!(
            to["spec"]["containers"],
            json!([{"name": "side", "image": "x"}, {"name": "a",
                "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}], "args": ["y"],
                "resources": {"limits": {"memory": "1Gi"}}}])
        );
        let sent = merge_patch(&live, &to);
        assert_eq!(sent["spec"]["containers"], to["spec"]["containers"]);
        assert_eq!(sent["spec"].get("size"), None);
    }

    #[test]
    fn removals_are_said() {
        let live = json!({"a": {"b": 1, "c": 2}, "env": [{"name": "A"}, {"name": "B"}]});
        let to = strategic(&live, &json!({"a": {"b": null}, "env": [{"name": "A", "$patch": "delete"}]}));
        assert_eq!(to, json!({"a": {"c": 2}, "env": [{"name": "B"}]}));
        assert_eq!(merge_patch(&live, &to), json!({"a": {"b": null}, "env": [{"name": "B"}]}));
    }
}
