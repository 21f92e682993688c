//! The patch of changes, computed against the object that is to be changed.

use dualplane_base::json::{list, str_at};
use dualplane_base::order::Order as _;
use dualplane_engines::Engines;
use serde_json::{Map, Value, json};

use super::fit::{LISTS, Role, template_paths};
use super::setting::{Change, NotMade, from, resources_hold};
use super::settings_file::{filled, in_file, of_container, of_variables};
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

/// A container of an object, the list in which it stands, and the volumes of its pods.
#[derive(Clone, Copy)]
struct Place<'v> {
    field: &'static str,
    container: &'v Value,
    volumes: &'v [Value],
}

/// What changes make of an object and of the ConfigMap from which its server takes its settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Made {
    /// The object's patch in the common form, `spec.template`; `None` where it is so already.
    pub template: Option<Value>,
    /// The ConfigMap, and its patch.
    pub map: Option<(String, Value)>,
}

/// Names of the ConfigMaps that decide what the changes become: that of a settings file, and those of variables.
///
/// # Errors
/// See [`NotOnObject`].
pub fn config_maps(
    changes: &[Change],
    object: &Value,
    container: Option<&str>,
    role: Option<Role>,
    engines: &Engines,
) -> Result<Vec<String>, NotOnObject> {
    let at = place(changes, object, container, role, engines)?;
    let mut out: Vec<String> = of_variables(at.container).map(str::to_owned).collect();
    if !changes.iter().any(|c| matches!(c, Change::Setting(_))) {
        out.clear();
    }
    let known = invocation(at.container);
    out.extend(of_container(changes, at.container, at.volumes, &known, engines).map(|f| f.map));
    out.order();
    out.dedup();
    Ok(out)
}

/// Computes what changes make of an object, given those of its ConfigMaps that could be read.
///
/// # Errors
/// See [`NotOnObject`].
pub fn on_object(
    changes: &[Change],
    object: &Value,
    container: Option<&str>,
    role: Option<Role>,
    engines: &Engines,
    maps: &[Value],
) -> Result<Made, NotOnObject> {
    let at = place(changes, object, container, role, engines)?;
    resources_hold(changes, at.container)?;
    let own = invocation(at.container);
    let known = filled(&own, at.container, maps);
    let file = of_container(changes, at.container, at.volumes, &known, engines);
    let held = file.as_ref().and_then(|f| {
        let map = maps.iter().find(|m| str_at(m, "/metadata/name") == f.map)?;
        Some((f, map, map.get("data")?.get(&f.key)?.as_str()?))
    });
    let mut rest = changes.to_vec();
    let mut template = Map::new();
    let mut patched = None;
    if let Some((file, map, text)) = held {
        let made = in_file(changes, file, text, &known, engines)?;
        if let Some(patch) = made.patch(file, map)? {
            patched = Some((file.map.clone(), patch));
            if let Value::Object(fields) = made.template() {
                template.extend(fields);
            }
        }
        rest = made.rest;
    }
    let mut fields = from(&rest, &own, known, engines)?.fields;
    if !fields.is_empty() {
        let mut item = Map::new();
        item.insert("name".into(), at.container.get("name").cloned().unwrap_or_default());
        item.append(&mut fields);
        template.insert("spec".into(), json!({ at.field: [item] }));
    }
    let template = (!template.is_empty()).then(|| json!({ "spec": { "template": template } }));
    Ok(Made { template, map: patched })
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
        .flat_map(|r| LISTS.map(|l| (l, *r)))
        .flat_map(|(field, r)| {
            let volumes = list(object, &format!("{r}/spec/volumes"));
            let items = list(object, &format!("{r}/spec/{field}")).iter();
            items.map(move |container| Place { field, container, volumes })
        })
        .collect();
    let names = || all.iter().map(|p| str_at(p.container, "/name").to_owned()).collect();
    if let Some(container) = container {
        let named = all.iter().find(|p| str_at(p.container, "/name") == container).copied();
        return named
            .ok_or_else(|| NotOnObject::NoContainer { container: container.to_owned(), has: names() });
    }
    // The only one, or the only one that starts the engine.
    let mains: Vec<Place<'v>> = all.iter().filter(|p| p.field == "containers").copied().collect();
    let engine =
        changes.iter().find_map(|c| if let Change::Setting(s) = c { engines.get(&s.engine) } else { None });
    let starts = |c: &Value| engine.is_some_and(|e| invocation(c).starts(e, engines));
    let mut servers = mains.iter().filter(|p| mains.len() == 1 || starts(p.container));
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
        on_object(&changes(), object, container, None, Engines::embedded(), &[]).map(|m| m.template)
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
