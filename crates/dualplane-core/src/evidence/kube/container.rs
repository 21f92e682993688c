//! A container of a pod: what it starts with, what it may use, how it is and how it ended.

use dualplane_base::json::{list, str_at, text_of};
use dualplane_engines::command_line::edit::{Invocation, Variable};
use serde_json::Value;

use super::fields::{memory_at, opt_at, time_at};
use crate::evidence::kube_model::{
    ConfigMapVariable, Container, ContainerKind, ContainerStatus, Probe, State, Termination,
};
use crate::units::parse_k8s_quantity;

/// Containers of one kind in one pod: an object of etcd has at most 1.5 MiB, which is fewer.
pub(super) const MAX_CONTAINERS: usize = 1000;

/// Variables that stand in a key of a ConfigMap.
fn of_config_maps(c: &Value) -> Vec<ConfigMapVariable> {
    let one = |e: &Value| {
        Some(ConfigMapVariable {
            variable: opt_at(e, "/name")?,
            map: opt_at(e, "/valueFrom/configMapKeyRef/name")?,
            key: opt_at(e, "/valueFrom/configMapKeyRef/key")?,
        })
    };
    list(c, "/env").iter().filter_map(one).take(MAX_CONTAINERS).collect()
}

/// What a container of an object starts with, exactly.
#[must_use]
pub fn invocation(c: &Value) -> Invocation {
    let words = |field: &str| list(c, field).iter().map(text_of).collect();
    let variable = |e: &Value| Variable {
        name: str_at(e, "/name").to_owned(),
        // A variable without a value has an empty one.
        value: match e.get("value") {
            Some(v) => Some(text_of(v)),
            None => e.get("valueFrom").is_none().then(String::new),
        },
    };
    let from = |e: &Value| {
        ["/configMapRef/name", "/secretRef/name"].iter().find_map(|p| opt_at(e, p)).unwrap_or_default()
    };
    Invocation {
        image: str_at(c, "/image").to_owned(),
        command: words("/command"),
        args: words("/args"),
        env: list(c, "/env").iter().map(variable).collect(),
        env_from: list(c, "/envFrom").iter().map(from).collect(),
    }
}

pub(super) fn container(c: &Value, kind: ContainerKind, statuses: &[Value]) -> Container {
    let name = str_at(c, "/name");
    let status = statuses.iter().find(|s| str_at(s, "/name") == name);
    let sidecar = kind == ContainerKind::Init && str_at(c, "/restartPolicy") == "Always";
    let mut args: Vec<String> = list(c, "/command").iter().map(text_of).collect();
    args.extend(list(c, "/args").iter().map(text_of));
    let devices = c
        .pointer("/resources/limits")
        .and_then(Value::as_object)
        .map(|l| {
            l.iter()
                .filter(|(k, _)| k.contains('/') && !k.starts_with("hugepages"))
                .filter_map(|(k, q)| Some((k.clone(), parse_k8s_quantity(&text_of(q))? as u64)))
                .collect()
        })
        .unwrap_or_default();
    Container {
        name: name.to_owned(),
        kind: if sidecar { ContainerKind::Sidecar } else { kind },
        image: str_at(c, "/image").to_owned(),
        args,
        env: list(c, "/env")
            .iter()
            .filter_map(|e| Some((str_at(e, "/name").to_owned(), text_of(e.get("value")?))))
            .collect(),
        // Every container of an object has an image: without one, a person kept what seemed to matter.
        invocation: c.get("image").map(|_| invocation(c)),
        config_maps: of_config_maps(c),
        files: Vec::new(),
        directory: str_at(c, "/workingDir").to_owned(),
        // What the kubelet set, where it says so: an in-place resize may be pending.
        memory_limit: status
            .and_then(|s| memory_at(s, "/resources/limits/memory"))
            .or_else(|| memory_at(c, "/resources/limits/memory")),
        memory_request: status
            .and_then(|s| memory_at(s, "/resources/requests/memory"))
            .or_else(|| memory_at(c, "/resources/requests/memory")),
        devices,
        mounts: list(c, "/volumeMounts")
            .iter()
            .map(|m| {
                (str_at(m, "/name").to_owned(), str_at(m, "/mountPath").trim_end_matches('/').to_owned())
            })
            .collect(),
        liveness: c.get("livenessProbe").map(probe),
        startup: c.get("startupProbe").map(probe),
        status: status.map(container_status),
    }
}

fn probe(p: &Value) -> Probe {
    let num = |key: &str, default: u64| p.get(key).and_then(Value::as_u64).unwrap_or(default);
    Probe {
        initial_delay: num("initialDelaySeconds", 0),
        period: num("periodSeconds", 10),
        failure_threshold: num("failureThreshold", 3),
    }
}

pub(super) fn container_status(s: &Value) -> ContainerStatus {
    ContainerStatus {
        restarts: s.pointer("/restartCount").and_then(Value::as_u64),
        ready: s.pointer("/ready").and_then(Value::as_bool),
        state: s.get("state").map(state).unwrap_or_default(),
        last: s.get("lastState").map(state).unwrap_or_default(),
        container_id: opt_at(s, "/containerID").map(bare_id),
    }
}

fn bare_id(id: String) -> String {
    id.rsplit_once("//").map_or(id.clone(), |(_, id)| id.to_owned())
}

fn state(s: &Value) -> State {
    if let Some(t) = s.get("terminated").filter(|t| t.is_object()) {
        return State::Terminated(Termination {
            exit_code: t.pointer("/exitCode").and_then(Value::as_i64),
            reason: str_at(t, "/reason").to_owned(),
            message: str_at(t, "/message").to_owned(),
            started: time_at(t, "/startedAt"),
            finished: time_at(t, "/finishedAt"),
            container_id: opt_at(t, "/containerID").map(bare_id),
            blurred: false,
        });
    }
    if let Some(w) = s.get("waiting").filter(|t| t.is_object()) {
        return State::Waiting {
            reason: str_at(w, "/reason").to_owned(),
            message: str_at(w, "/message").to_owned(),
        };
    }
    if let Some(r) = s.get("running").filter(|t| t.is_object()) {
        return State::Running { started: time_at(r, "/startedAt") };
    }
    State::None
}
