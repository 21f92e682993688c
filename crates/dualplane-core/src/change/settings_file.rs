//! Settings that a server reads from a file, which a ConfigMap holds: where that file is, and its text with other values.

use dualplane_base::hash::fnv1a;
use dualplane_base::json::{list, str_at};
use dualplane_engines::command_line::edit::{Invocation, Unchanged};
use dualplane_engines::{Descriptor, Engines};
use serde_json::{Value, json};

use super::setting::{Change, NotMade, Setting};
use super::yaml_text;
use crate::evidence::{Mount, map_of, mounts};

/// Annotation of a pod template that changes with the file: the pods are made anew and read it.
const ANNOTATION: &str = "dualplane.dev/settings-file";

/// A settings file and the ConfigMap that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// The flag that names it.
    pub flag: String,
    /// The ConfigMap.
    pub map: String,
    /// Its key.
    pub key: String,
    /// What it says counts, whatever the command line says.
    pub overrides: bool,
}

/// The settings file that a command line names, where a ConfigMap holds it.
#[must_use]
pub fn settings_file(
    invocation: &Invocation,
    mounts: &[Mount],
    directory: &str,
    engine: &Descriptor,
    engines: &Engines,
) -> Option<SettingsFile> {
    let flags = engine.overriding_files.iter().chain(&engine.settings_files);
    let (flag, path) =
        flags.into_iter().find_map(|f| Some((f, invocation.value(std::slice::from_ref(f), engines)?)))?;
    let path = if path.starts_with('/') {
        path
    } else if directory.starts_with('/') {
        format!("{}/{}", directory.trim_end_matches('/'), path.trim_start_matches("./"))
    } else {
        return None;
    };
    let (map, key) = map_of(mounts, &path)?;
    Some(SettingsFile {
        flag: flag.clone(),
        map: map.to_owned(),
        key,
        overrides: engine.overriding_files.contains(flag),
    })
}

/// The same of a container of an object, for the engine of the first setting.
pub(super) fn of_container(
    changes: &[Change],
    container: &Value,
    volumes: &[Value],
    invocation: &Invocation,
    engines: &Engines,
) -> Option<SettingsFile> {
    let engine = changes.iter().find_map(|c| match c {
        Change::Setting(s) => engines.get(&s.engine),
        Change::Resource(_) => None,
    })?;
    settings_file(invocation, &mounts(container, volumes), str_at(container, "/workingDir"), engine, engines)
}

/// What changes make of a file.
pub(super) struct InFile {
    /// Its text.
    text: String,
    /// What is not to be changed in it.
    pub rest: Vec<Change>,
}

/// Makes in the file what is to be made there: what it sets already, and all settings where it has the last word.
pub(super) fn in_file(
    changes: &[Change],
    file: &SettingsFile,
    text: &str,
    invocation: &Invocation,
    engines: &Engines,
) -> Result<InFile, NotMade> {
    let mut out = InFile { text: text.to_owned(), rest: Vec::new() };
    for change in changes {
        let Change::Setting(s) = change else {
            out.rest.push(change.clone());
            continue;
        };
        let engine = engines.get(&s.engine).ok_or_else(|| NotMade::Engine(s.engine.clone()))?;
        let on_line = invocation.value(&s.names, engines);
        let by_hand = || NotMade::InFile { name: s.words(), map: file.map.clone(), key: file.key.clone() };
        let document = yaml_text::read(&out.text).ok_or_else(by_hand)?;
        let keys = keys(engine, s);
        let there = keys.iter().find_map(|k| Some((k, yaml_text::value(&document, &split(k))?)));
        let now = there.as_ref().map(|(_, v)| v.clone());
        if !file.overrides && (on_line.is_some() || now.is_none()) {
            out.rest.push(change.clone());
            continue;
        }
        if let Some(moved) = s.moved(now.as_deref().or(on_line.as_deref())) {
            return Err(moved);
        }
        let value = s.value.as_deref().ok_or_else(|| Unchanged::File(file.flag.clone()))?;
        if now.as_deref() == Some(value) {
            continue;
        }
        let key = there.map(|(k, _)| k).or(keys.first()).ok_or_else(by_hand)?;
        out.text = yaml_text::set(&out.text, &split(key), value).ok_or_else(by_hand)?;
    }
    Ok(out)
}

impl InFile {
    /// The patch of the ConfigMap; `None` where the file is so already.
    pub(super) fn patch(&self, file: &SettingsFile, map: &Value) -> Result<Option<Value>, NotMade> {
        if map.pointer("/data").and_then(|d| d.get(&file.key)).and_then(Value::as_str)
            == Some(self.text.as_str())
        {
            return Ok(None);
        }
        if map.get("immutable") == Some(&Value::Bool(true)) {
            return Err(NotMade::Immutable { map: file.map.clone(), key: file.key.clone() });
        }
        Ok(Some(json!({ "data": { file.key.as_str(): self.text } })))
    }

    /// What of the pod template makes its pods anew.
    pub(super) fn template(&self) -> Value {
        // It only has to differ.
        let hash = fnv1a(self.text.bytes());
        json!({ "metadata": { "annotations": { ANNOTATION: format!("{hash:016x}") } } })
    }
}

/// Names under which a file may have a setting, the usual one first; a dot stands before a key of an inner map.
fn keys(engine: &Descriptor, setting: &Setting) -> Vec<String> {
    let mut out = Vec::new();
    for name in &setting.names {
        let own = engine.file_keys.iter().filter(|(flag, _)| flag == name).map(|(_, key)| key.clone());
        let plain = name.trim_start_matches('-');
        for key in own.chain([plain.to_owned(), plain.replace('-', "_"), plain.replace('_', "-")]) {
            if !out.contains(&key) {
                out.push(key);
            }
        }
    }
    out
}

fn split(key: &str) -> Vec<&str> {
    key.split('.').collect()
}

/// The invocation with the variables that ConfigMaps give, as far as these are known.
pub(super) fn filled(invocation: &Invocation, container: &Value, maps: &[Value]) -> Invocation {
    let mut out = invocation.clone();
    let map =
        |name: &str| maps.iter().find(|m| str_at(m, "/metadata/name") == name)?.get("data")?.as_object();
    for (variable, of) in out.env.iter_mut().zip(list(container, "/env")) {
        let Some(from) = of.pointer("/valueFrom/configMapKeyRef").filter(|_| variable.value.is_none()) else {
            continue;
        };
        let found = map(str_at(from, "/name")).and_then(|m| m.get(str_at(from, "/key"))?.as_str());
        variable.value = found.map(str::to_owned);
    }
    // Of several the last counts, and a variable of the container's own before all.
    for from in list(container, "/envFrom").iter().rev() {
        let Some(all) = map(str_at(from, "/configMapRef/name")) else { continue };
        for (key, value) in all {
            let name = format!("{}{key}", str_at(from, "/prefix"));
            if let Some(value) = value.as_str().filter(|_| !out.env.iter().any(|v| v.name == name)) {
                let value = Some(value.to_owned());
                out.env.push(dualplane_engines::command_line::edit::Variable { name, value });
            }
        }
    }
    out
}

/// ConfigMaps from which a container takes variables.
pub(super) fn of_variables(container: &Value) -> impl Iterator<Item = &str> {
    let keys = list(container, "/env").iter().map(|e| str_at(e, "/valueFrom/configMapKeyRef/name"));
    keys.chain(list(container, "/envFrom").iter().map(|e| str_at(e, "/configMapRef/name")))
        .filter(|n| !n.is_empty())
}
