//! What is kept of the objects that were passed, for rules that hold objects against each other.

use std::collections::BTreeMap;

use dualplane_base::json::{list, str_at, text_of};
use serde_json::Value;

use crate::object::{Object, Pods};

/// Objects of each kind that are kept. A cluster of this size is linted by its namespaces.
const MOST: usize = 20_000;

/// A workload with a model server.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Labels of its pods.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) replicas: u64,
    /// Names of its ports.
    pub(crate) ports: Vec<String>,
}

/// An object that looks at others: an autoscaler, a disruption budget, a monitor.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) object: Object,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) workloads: Vec<Workload>,
    pub(crate) watchers: Vec<Watcher>,
    /// More than are kept were passed.
    pub(crate) dropped: bool,
}

/// Kinds that look at others.
const WATCHERS: &[&str] = &[
    "HorizontalPodAutoscaler",
    "ScaledObject",
    "VerticalPodAutoscaler",
    "PodDisruptionBudget",
    "PodMonitor",
];

impl Seen {
    pub(crate) fn watcher(&mut self, object: &Object) {
        if !WATCHERS.contains(&object.kind.as_str()) {
            return;
        }
        if self.watchers.len() >= MOST {
            self.dropped = true;
            return;
        }
        // What it says of its state is of no interest, and may be long.
        let mut object = object.clone();
        if let Some(map) = object.value.as_object_mut() {
            map.retain(|k, _| k != "status");
        }
        self.watchers.push(Watcher { object });
    }

    pub(crate) fn workload(&mut self, object: &Object, pod: &Pods<'_>, server: &Value) {
        if self.workloads.len() >= MOST {
            self.dropped = true;
            return;
        }
        // Labels stand beside the specification of the pod.
        let template = pod.pointer.rsplit_once('/').map_or("", |(t, _)| t);
        let labels = object.value.pointer(&format!("{template}/metadata/labels")).and_then(Value::as_object);
        self.workloads.push(Workload {
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            labels: labels.into_iter().flatten().map(|(k, v)| (k.clone(), text_of(v))).collect(),
            replicas: object.replicas(),
            ports: list(server, "/ports").iter().map(|p| str_at(p, "/name").to_owned()).collect(),
        });
    }

    /// Watchers of a kind.
    pub(crate) fn of(&self, kind: &'static str) -> impl Iterator<Item = &Watcher> {
        self.watchers.iter().filter(move |w| w.object.kind == kind)
    }

    /// The workload that a reference of a watcher names.
    pub(crate) fn target(&self, watcher: &Watcher, pointer: &str) -> Option<&Workload> {
        let to = watcher.object.value.pointer(pointer)?;
        let kind = to.get("kind").and_then(Value::as_str).unwrap_or("Deployment");
        let name = str_at(to, "/name");
        let mut all = self.workloads.iter();
        all.find(|w| w.kind == kind && w.name == name && w.namespace == watcher.object.namespace)
    }

    /// Workloads whose pods a selector takes.
    pub(crate) fn selected<'a>(&'a self, watcher: &'a Watcher) -> Vec<&'a Workload> {
        let selector = watcher.object.value.pointer("/spec/selector");
        let labels = selector.and_then(|s| s.get("matchLabels")).and_then(Value::as_object);
        let expressions =
            selector.and_then(|s| s.get("matchExpressions")).is_some_and(|e| !list(e, "").is_empty());
        // An empty selector takes all pods of a namespace, and expressions are not read: neither tells whom it means.
        let Some(labels) = labels.filter(|l| !l.is_empty() && !expressions) else { return Vec::new() };
        self.workloads
            .iter()
            .filter(|w| w.namespace == watcher.object.namespace)
            .filter(|w| labels.iter().all(|(k, v)| w.labels.get(k).is_some_and(|l| *l == text_of(v))))
            .collect()
    }
}
