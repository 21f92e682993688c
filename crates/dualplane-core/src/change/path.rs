//! Paths into an object that survive a shifted list: items of keyed lists are named by their key, not by their index.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A field.
    Key(String),
    /// The item of a keyed list with these values: `{"name": "server"}`.
    Item(BTreeMap<String, Value>),
}

/// Lists of a pod's specification that are maps by their keys, as the API's own types mark them (`patchMergeKey`,
/// `x-kubernetes-list-map-keys`). Every other list is one value.
const KEYED: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("resourceClaims", &["name"]),
    ("claims", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("ports", &["containerPort", "protocol"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
];

/// The keys of the items of a field, where it is a keyed list.
pub(super) fn keys(field: &str) -> Option<&'static [&'static str]> {
    KEYED.iter().find(|k| k.0 == field).map(|k| k.1)
}

/// The keys of one item; `None` where it lacks the first.
pub(super) fn identity(keys: &[&str], item: &Value) -> Option<BTreeMap<String, Value>> {
    let item = item.as_object()?;
    keys.first().filter(|k| item.contains_key(**k))?;
    let known = keys.iter().filter_map(|k| Some(((*k).to_owned(), item.get(*k)?.clone())));
    Some(known.filter(|(_, v)| !v.is_object() && !v.is_array()).collect())
}

/// The keys of all items; `None` where one lacks its key or two have the same, so that the list is one value.
pub(super) fn identities(field: &str, items: &[Value]) -> Option<Vec<BTreeMap<String, Value>>> {
    let keys = keys(field)?;
    let all: Vec<_> = items.iter().map(|i| identity(keys, i)).collect::<Option<_>>()?;
    let twice = all.iter().enumerate().any(|(i, a)| all.iter().skip(i + 1).any(|b| a == b));
    (!twice).then_some(all)
}

/// Whether an item has these keys.
pub(super) fn is_item(id: &BTreeMap<String, Value>, item: &Value) -> bool {
    item.as_object().is_some_and(|o: &Map<String, Value>| id.iter().all(|(k, v)| o.get(k) == Some(v)))
}

/// A path for people: `spec.template.spec.containers[server].resources.limits.memory`.
#[must_use]
pub fn at(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
            Step::Item(id) => {
                let values: Vec<String> = id
                    .values()
                    .map(|v| v.as_str().map_or_else(|| v.to_string(), ToOwned::to_owned))
                    .collect();
                out.push('[');
                out.push_str(&values.join(" "));
                out.push(']');
            }
        }
    }
    out
}

/// One segment of a JSON pointer.
pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_are_keyed_only_where_every_item_has_its_own_key() {
        let two = [json!({"name": "a"}), json!({"name": "b"})];
        assert!(identities("env", &two).is_some());
        assert!(identities("args", &two).is_none());
        assert!(identities("env", &[json!({"name": "a"}), json!({"name": "a"})]).is_none());
        assert!(identities("env", &[json!({"value": "a"})]).is_none());
        let ports = [
            json!({"containerPort": 53, "protocol": "TCP"}),
            json!({"containerPort": 53, "protocol": "UDP"}),
        ];
        assert!(identities("ports", &ports).is_some());
    }

    #[test]
    fn paths_read_as_people_write_them() {
        let item = Step::Item([("name".to_owned(), json!("server"))].into());
        let path = [Step::Key("containers".into()), item, Step::Key("image".into())];
        assert_eq!(at(&path), "containers[server].image");
        let text = serde_json::to_string(&path).unwrap();
        assert_eq!(text, r#"["containers",{"name":"server"},"image"]"#);
        assert_eq!(serde_json::from_str::<Vec<Step>>(&text).unwrap(), path);
    }
}
