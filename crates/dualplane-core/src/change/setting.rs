//! Changes of a container as values: a report carries them beside its patch, and `apply` computes the patch anew from them
//! against the object as it is.
//!
//! The pod of the evidence is not its owner's template: webhooks add to it, and the template may have moved on. A list of
//! arguments goes to the API as a whole, so that it must be computed from the list that is there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use dualplane_engines::command_line::edit::{self, Edited, Invocation, To, Unchanged};
use dualplane_engines::{Descriptor, Engines};

/// One change of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// A setting of the server: a flag, or a variable of its environment.
    Setting(Setting),
    /// A resource.
    Resource(Resource),
}

/// A setting of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Id of the engine whose setting it is.
    pub engine: String,
    /// Its names, the usual one first: `--max-model-len`.
    pub names: Vec<String>,
    /// What it is to be; absent where it is to be taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The value that the report computed with; absent where it found none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The pod itself shows the value, or that there is none; a log may show a default.
    #[serde(default)]
    pub shown: bool,
}

/// A resource: limit and request, as far as they change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// `nvidia.com/gpu`.
    pub name: String,
    /// What the limit is to be; absent where the resource is to be taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// What the request is to be, of a resource that may be requested below its limit; absent where it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The limit that the report computed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
}

/// What changes make of a container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Fields of the container as a strategic merge patch has them; empty where all is so already.
    pub fields: Map<String, Value>,
    /// Variables of the command line whose values are not known: one of them may hold the same flag.
    pub hidden: Vec<String>,
}

/// Why changes are not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMade {
    /// The command line cannot be changed by a patch.
    #[error("{0}")]
    Unchanged(#[from] Unchanged),
    /// The engine of a later report.
    #[error("engine {0} is not known here")]
    Engine(String),
    /// A settings file that cannot be changed line by line.
    #[error(
        "key {key} of ConfigMap {map} holds the server's settings in a form that is not changed safely: set {name} there by hand"
    )]
    InFile {
        /// What is to be set.
        name: String,
        /// The ConfigMap.
        map: String,
        /// Its key.
        key: String,
    },
    /// A settings file in a ConfigMap that cannot be changed.
    #[error(
        "the server reads its settings from key {key} of ConfigMap {map}, which is immutable: create a copy under another name with the change, and mount that one instead"
    )]
    Immutable {
        /// The ConfigMap.
        map: String,
        /// Its key.
        key: String,
    },
    /// It is not what the report computed with.
    #[error("{name} was {was} in the report, but it is {now} now")]
    Moved {
        /// Of the setting or resource.
        name: String,
        /// In the report.
        was: String,
        /// Now.
        now: String,
    },
}

impl Change {
    /// In one line: `--max-model-len 32768`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Setting(s) => s.words(),
            Self::Resource(r) => r.words(),
        }
    }
}

impl Resource {
    fn words(&self) -> String {
        match (&self.limit, &self.request) {
            (Some(limit), _) if !self.may_differ() => format!("{} {limit}", self.name),
            (Some(limit), None) => format!("resources.limits.{} {limit}", self.name),
            (Some(limit), Some(request)) => {
                format!("resources.requests.{0} {request}, resources.limits.{0} {limit}", self.name)
            }
            (None, _) => format!("no {}", self.name),
        }
    }

    /// Its request may be below its limit; that of an extended resource is its limit.
    fn may_differ(&self) -> bool {
        matches!(self.name.as_str(), "memory" | "cpu" | "ephemeral-storage")
    }
}

impl Setting {
    pub(super) fn words(&self) -> String {
        let name = self.names.first().map_or("", String::as_str);
        match &self.value {
            Some(value) if name.starts_with('-') => format!("{name} {value}"),
            Some(value) => format!("{name}={value}"),
            None => format!("no {name}"),
        }
    }

    fn set(
        &self,
        invocation: &Invocation,
        engine: &Descriptor,
        engines: &Engines,
    ) -> Result<Edited, Unchanged> {
        let to = self.value.as_deref().map_or(To::Absent, To::Value);
        edit::set(invocation, &self.names, to, engine, engines)
    }

    /// What stands against it: the value moved since the report.
    pub(super) fn moved(&self, now: Option<&str>) -> Option<NotMade> {
        let wanted = |now: &str| self.value.as_deref().is_some_and(|v| same(v, now));
        let holds = match (now, self.was.as_deref()) {
            (Some(now), _) if wanted(now) => true,
            (Some(now), Some(was)) => same(now, was),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => !self.shown,
        };
        let word = |v: Option<&str>| v.map_or_else(|| "not set".to_owned(), str::to_owned);
        (!holds).then(|| NotMade::Moved {
            name: self.names.first().cloned().unwrap_or_default(),
            was: word(self.was.as_deref()),
            now: word(now),
        })
    }
}

/// `0.90` is `0.9`.
fn same(a: &str, b: &str) -> bool {
    let number = |t: &str| t.trim().parse::<f64>().ok();
    a == b || number(a).zip(number(b)).is_some_and(|(a, b)| (a - b).abs() <= f64::EPSILON * a.abs())
}

/// Computes what changes make of a container that starts so.
///
/// # Errors
/// See [`NotMade`].
pub fn outcome(changes: &[Change], invocation: &Invocation, engines: &Engines) -> Result<Outcome, NotMade> {
    from(changes, invocation, invocation.clone(), engines)
}

/// The same, where more is known of the variables than the object itself says.
pub(super) fn from(
    changes: &[Change],
    invocation: &Invocation,
    known: Invocation,
    engines: &Engines,
) -> Result<Outcome, NotMade> {
    let mut now = known.clone();
    let mut hidden = Vec::new();
    let (mut limits, mut requests) = (BTreeMap::new(), Map::new());
    for change in changes {
        match change {
            Change::Setting(s) => {
                let engine = engines.get(&s.engine).ok_or_else(|| NotMade::Engine(s.engine.clone()))?;
                let edited = s.set(&now, engine, engines)?;
                if let Some(moved) = s.moved(edited.was.as_deref()) {
                    return Err(moved);
                }
                now = edited.invocation;
                hidden.extend(edited.hidden);
            }
            Change::Resource(r) => {
                let limit = r.limit.clone().map_or(Value::Null, Value::String);
                match &r.request {
                    Some(request) => {
                        requests.insert(r.name.clone(), Value::String(request.clone()));
                    }
                    None if r.may_differ() => {}
                    // A request that stands beside the limit must not stay.
                    None => {
                        requests.insert(r.name.clone(), limit.clone());
                    }
                }
                limits.insert(r.name.clone(), limit);
            }
        }
    }
    let mut fields = changed(invocation, &known, &now);
    if !limits.is_empty() {
        let mut resources = json!({ "limits": limits });
        if let Some(resources) = resources.as_object_mut().filter(|_| !requests.is_empty()) {
            resources.insert("requests".into(), Value::Object(requests));
        }
        fields.insert("resources".into(), resources);
    }
    hidden.dedup();
    Ok(Outcome { fields, hidden })
}

/// The lists that differ: those of words as a whole, the environment by its names.
fn changed(object: &Invocation, before: &Invocation, after: &Invocation) -> Map<String, Value> {
    let mut out = Map::new();
    for (field, b, a) in [("command", &before.command, &after.command), ("args", &before.args, &after.args)] {
        if b != a {
            out.insert(field.into(), json!(a));
        }
    }
    let mut env = Vec::new();
    for v in after.env.iter().filter(|v| !before.env.contains(v)) {
        let mut item = json!({ "name": v.name, "value": v.value });
        let elsewhere = object.env.iter().any(|o| o.name == v.name && o.value.is_none());
        if let Some(item) = item.as_object_mut().filter(|_| elsewhere) {
            item.insert("valueFrom".into(), Value::Null);
        }
        env.push(item);
    }
    let gone = before.env.iter().filter(|b| !after.env.iter().any(|a| a.name == b.name));
    env.extend(gone.map(|v| json!({ "name": v.name, "$patch": "delete" })));
    if !env.is_empty() {
        out.insert("env".into(), Value::Array(env));
    }
    out
}

/// Limits that are not what the report computed with, against the resources of a container.
///
/// # Errors
/// [`NotMade::Moved`].
pub fn resources_hold(changes: &[Change], container: &Value) -> Result<(), NotMade> {
    for change in changes {
        let Change::Resource(r) = change else { continue };
        let Resource { name, limit, was, .. } = r;
        // Evidence without the pod does not show a limit that the container may well have.
        if was.is_none() && r.may_differ() {
            continue;
        }
        let limits = container.pointer("/resources/limits");
        let now = limits.and_then(|l| l.get(name)).map(dualplane_base::json::text_of);
        if !amounts(&now, was) && !amounts(&now, limit) {
            let word = |v: &Option<String>| v.clone().unwrap_or_else(|| "not set".to_owned());
            return Err(NotMade::Moved { name: name.clone(), was: word(was), now: word(&now) });
        }
    }
    Ok(())
}

/// `65536Mi` is `64Gi`.
fn amounts(a: &Option<String>, b: &Option<String>) -> bool {
    let bytes = |t: &Option<String>| t.as_deref().and_then(dualplane_base::units::parse_k8s_memory);
    a == b || bytes(a).zip(bytes(b)).is_some_and(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(names: &[&str], value: Option<&str>, was: Option<&str>, shown: bool) -> Change {
        Change::Setting(Setting {
            engine: "vllm".into(),
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            value: value.map(str::to_owned),
            was: was.map(str::to_owned),
            shown,
        })
    }

    fn of(container: &Value, changes: &[Change]) -> Result<Value, NotMade> {
        let invocation = crate::evidence::invocation(container);
        outcome(changes, &invocation, Engines::embedded()).map(|o| Value::Object(o.fields))
    }

    fn server(args: Value) -> Value {
        json!({"name": "s", "image": "vllm/vllm-openai:v1", "args": args,
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "B", "value": "1"}]})
    }

    #[test]
    fn only_the_lists_that_change_are_in_the_patch() {
        let s = server(json!(["--model", "m", "--max-num-seqs", 64]));
        let share = setting(&["--gpu-memory-utilization"], Some("0.88"), None, true);
        let seqs = setting(&["--max-num-seqs"], Some("16"), Some("64"), true);
        assert_eq!(
            of(&s, &[share, seqs]),
            Ok(json!({"args": ["--model", "m", "--max-num-seqs", "16", "--gpu-memory-utilization", "0.88"]}))
        );
        assert_eq!(
            of(&s, &[setting(&["A"], Some("x"), None, false), setting(&["B"], None, Some("1"), true)]),
            Ok(
                json!({"env": [{"name": "A", "value": "x", "valueFrom": null}, {"name": "B", "$patch": "delete"}]})
            )
        );
        let gpus = Resource {
            name: "nvidia.com/gpu".into(),
            limit: Some("2".into()),
            request: None,
            was: Some("1".into()),
        };
        assert_eq!(
            of(&s, &[Change::Resource(gpus)]),
            Ok(
                json!({"resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}})
            )
        );
        assert_eq!(of(&s, &[setting(&["--max-num-seqs"], Some("64"), None, true)]), Ok(json!({})));
    }

    #[test]
    fn a_value_that_moved_since_the_report_stops_it() {
        let s = server(json!(["--max-num-seqs=64"]));
        let seqs = &["--max-num-seqs"];
        for (was, shown, good) in [
            (Some("64"), true, true),
            (Some("64.0"), true, true),
            (Some("128"), true, false),
            (None, true, false),
            // A log shows what counts, and not where it came from.
            (None, false, true),
            (Some("128"), false, false),
        ] {
            assert_eq!(of(&s, &[setting(seqs, Some("16"), was, shown)]).is_ok(), good, "{was:?} {shown}");
            assert!(of(&s, &[setting(seqs, Some("64"), was, shown)]).is_ok(), "it is so already");
        }
        let none = server(json!([]));
        assert!(of(&none, &[setting(seqs, Some("16"), Some("64"), true)]).is_err());
        assert!(of(&none, &[setting(seqs, Some("16"), Some("64"), false)]).is_ok());
        let e = of(&s, &[setting(seqs, Some("16"), Some("128"), true)]).unwrap_err();
        assert_eq!(e.to_string(), "--max-num-seqs was 128 in the report, but it is 64 now");
        let gpus = |was: &str| {
            [Change::Resource(Resource {
                name: "nvidia.com/gpu".into(),
                limit: Some("4".into()),
                request: None,
                was: Some(was.into()),
            })]
        };
        let s = json!({"resources": {"limits": {"nvidia.com/gpu": 2}}});
        assert!(resources_hold(&gpus("2"), &s).is_ok() && resources_hold(&gpus("1"), &s).is_err());
    }

    #[test]
    fn memory_is_an_amount_with_a_request_of_its_own() {
        let memory = |request: Option<&str>| {
            [Change::Resource(Resource {
                name: "memory".into(),
                limit: Some("80Gi".into()),
                request: request.map(str::to_owned),
                was: Some("64Gi".into()),
            })]
        };
        let s = server(json!([]));
        assert_eq!(
            of(&s, &memory(Some("70Gi"))),
            Ok(json!({"resources": {"limits": {"memory": "80Gi"}, "requests": {"memory": "70Gi"}}}))
        );
        assert_eq!(of(&s, &memory(None)), Ok(json!({"resources": {"limits": {"memory": "80Gi"}}})));
        for (now, good) in
            [("64Gi", true), ("65536Mi", true), ("68719476736", true), ("80Gi", true), ("96Gi", false)]
        {
            let s = json!({"resources": {"limits": {"memory": now}}});
            assert_eq!(resources_hold(&memory(None), &s).is_ok(), good, "{now}");
        }
    }

    #[test]
    fn changes_are_read_as_they_were_written() {
        let one = setting(&["--a", "-a"], Some("1"), None, true);
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"setting","engine":"vllm","names":["--a","-a"],"value":"1","shown":true}"#
        );
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), one);
        assert_eq!(
            (one.words(), setting(&["A"], Some("1"), None, true).words()),
            ("--a 1".into(), "A=1".into())
        );
    }
}
