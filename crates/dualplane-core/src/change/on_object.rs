//! The patch of changes, computed against the object that is to be changed.

use dualplane_base::json::{list, str_at};
use dualplane_engines::Engines;
use serde_json::{Map, Value, json};

use super::fit::{LISTS, Role, template_paths};
use super::setting::{Change, NotMade, outcome, resources_hold};
use crate::evidence::invocation;

/// Why there is no patch for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOnObject {
    /// Several containers may be meant, or none.
    #[error("the report does not name the container, and the object has {}", .0.join(", "))]
    Container(Vec<String>),
    /// No container of that name.
    #[error("the report is about container {container}, but the object has {}", .has.join(", "))]
    NoContainer {
        /// Of the report.
        container: String,
        /// Of the object.
        has: Vec<String>,
    },
    /// A change is not made.
    #[error(transparent)]
    NotMade(#[from] NotMade),
}

/// A container of an object, and the list in which it stands.
type Place<'v> = (&'static str, &'v Value);

/// The patch in the common form, `spec.template.spec`; `None` where the object is so already.
///
/// # Errors
/// See [`NotOnObject`].
pub fn on_object(
    changes: &[Change],
    object: &Value,
    container: Option<&str>,
    role: Option<Role>,
    engines: &Engines,
) -> Result<Option<Value>, NotOnObject> {
    let (field, found) = place(changes, object, container, role, engines)?;
    resources_hold(changes, found)?;
    let mut made = outcome(changes, &invocation(found), engines)?.fields;
    if made.is_empty() {
        return Ok(None);
    }
    let mut item = Map::new();
    item.insert("name".into(), found.get("name").cloned().unwrap_or_default());
    item.append(&mut made);
    Ok(Some(json!({ "spec": { "template": { "spec": { field: [item] } } } })))
}

fn place<'v>(
    changes: &[Change],
    object: &'v Value,
    container: Option<&str>,
    role: Option<Role>,
    engines: &Engines,
) -> Result<Place<'v>, NotOnObject> {
    let mut roots: Vec<&str> = template_paths(str_at(object, "/kind")).to_vec();
    if roots.is_empty() {
        roots = vec!["/spec/template", ""];
    }
    roots.retain(|r| object.pointer(&format!("{r}/spec/containers")).is_some());
    if role == Some(Role::Worker) {
        roots.reverse();
    }
    let all: Vec<Place<'v>> = roots
        .iter()
        .take(1)
        .flat_map(|r| LISTS.map(|l| (l, list(object, &format!("{r}/spec/{l}")))))
        .flat_map(|(l, items)| items.iter().map(move |c| (l, c)))
        .collect();
    let names = || all.iter().map(|(_, c)| str_at(c, "/name").to_owned()).collect();
    if let Some(container) = container {
        let named = all.iter().find(|(_, c)| str_at(c, "/name") == container).copied();
        return named
            .ok_or_else(|| NotOnObject::NoContainer { container: container.to_owned(), has: names() });
    }
    // The only one, or the only one that starts the engine.
    let mains: Vec<Place<'v>> = all.iter().filter(|(l, _)| *l == "containers").copied().collect();
    let engine =
        changes.iter().find_map(|c| if let Change::Setting(s) = c { engines.get(&s.engine) } else { None });
    let starts = |c: &Value| engine.is_some_and(|e| invocation(c).starts(e, engines));
    let mut servers = mains.iter().filter(|(_, c)| mains.len() == 1 || starts(c));
    match (servers.next(), servers.next()) {
        (Some(one), None) => Ok(*one),
        _ => Err(NotOnObject::Container(names())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<Change> {
        let text = r#"[{"kind": "setting", "engine": "vllm", "names": ["--max-model-len"], "value": "8", "was": "9", "shown": true}]"#;
        serde_json::from_str(text).unwrap()
    }

    fn of(object: &Value, container: Option<&str>) -> Result<Option<Value>, NotOnObject> {
        on_object(&changes(), object, container, None, Engines::embedded())
    }

    #[test]
    fn the_container_of_the_server_is_found() {
        let server = json!({"name": "s", "image": "x", "command": ["vllm", "serve", "m"], "args": ["--max-model-len", "9", "-x"]});
        let deployment = |containers: Value| json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}});
        let two = deployment(json!([{"name": "mesh", "image": "envoy"}, server]));
        let want = json!({"spec": {"template": {"spec": {"containers": [{"name": "s", "args": ["--max-model-len", "8", "-x"]}]}}}});
        for container in [None, Some("s")] {
            assert_eq!(of(&two, container), Ok(Some(want.clone())));
        }
        let e = of(&two, Some("other")).unwrap_err().to_string();
        assert_eq!(e, "the report is about container other, but the object has mesh, s");
        let unknown = deployment(json!([{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]));
        assert!(matches!(of(&unknown, None), Err(NotOnObject::Container(_))));
        let done = deployment(
            json!([{"name": "s", "image": "x", "command": ["vllm", "serve", "m", "--max-model-len=8"]}]),
        );
        assert_eq!(of(&done, None), Ok(None));
        let moved = deployment(
            json!([{"name": "s", "image": "x", "command": ["vllm", "serve", "m", "--max-model-len=4"]}]),
        );
        assert!(matches!(of(&moved, None), Err(NotOnObject::NotMade(NotMade::Moved { .. }))));
    }
}
