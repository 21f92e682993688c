//! Converts Kubernetes JSON (also from YAML) into our own words. Missing or odd fields are skipped, never an error.

use dualplane_base::json::{list, str_at, text_of};
use dualplane_engines::command_line::edit::{Invocation, Variable};
use std::cell::Cell;

use serde_json::Value;

use super::mounts::mounts;
use crate::evidence::Bundle;
use crate::evidence::kube_model::ConfigMapVariable;
use crate::evidence::kube_model::{
    Condition, Container, ContainerKind, ContainerStatus, Event, Extent, Node, Pod, Probe, State,
    Termination, Volume,
};
use crate::time::{Stamp, parse_rfc3339};
use crate::units::{Bytes, parse_k8s_memory, parse_k8s_quantity};

/// Lists in lists are unfolded this deep; nobody nests deeper without meaning harm.
const MAX_DEPTH: u32 = 4;
/// Containers of one kind in one pod: an object of etcd has at most 1.5 MiB, which is fewer.
const MAX_CONTAINERS: usize = 1000;
/// Bytes that finding the lines of a list's events may look through again.
const MAX_SOUGHT: usize = 256 << 20;

/// Adds several objects of one text, which is walked over once; the number of those that triage uses.
pub(in crate::evidence) fn add_all(bundle: &mut Bundle, objects: &[Value], file: &str, text: &str) -> usize {
    let lines = LineIndex::new(text);
    objects.iter().filter(|o| add_at(bundle, o, "", file, &lines, 0)).count()
}

/// Adds one object without the lines of its events; false where triage does not use it.
pub(in crate::evidence) fn add_item(bundle: &mut Bundle, object: &Value, kind: &str, file: &str) -> bool {
    add_at(bundle, object, kind, file, &LineIndex::new(""), 1)
}

/// `kind`: what an item without a kind of its own is; a `PodList` of `kubectl cluster-info dump` holds such items.
fn add_at(
    bundle: &mut Bundle,
    object: &Value,
    kind: &str,
    file: &str,
    lines: &LineIndex<'_>,
    depth: u32,
) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or(kind);
    if let Some(items) = object.get("items").and_then(Value::as_array) {
        let of = kind.strip_suffix("List").unwrap_or_default();
        let mut any = items.is_empty();
        for item in items {
            any |= depth < MAX_DEPTH && add_at(bundle, item, of, file, lines, depth + 1);
        }
        return any;
    }
    match kind {
        "Pod" => {
            let many = ["/spec/containers", "/spec/initContainers", "/status/containerStatuses"]
                .iter()
                .map(|p| list(object, p).len())
                .max()
                .filter(|n| *n > MAX_CONTAINERS);
            if let Some(n) = many {
                let why = format!(
                    "pod {} has {n} containers; only the first {MAX_CONTAINERS} were read; save it with \
                    only the container that died",
                    str_at(object, "/metadata/name").chars().take(253).collect::<String>()
                );
                bundle.gap(file, &why, None);
            }
            // A status without its pod joins the pod that other files tell of.
            let pod = pod(object, file);
            let pods = if pod.name.is_empty() { &mut bundle.pasted } else { &mut bundle.pods };
            pods.push(pod);
        }
        "Event" => bundle.events.push(event(object, file, lines)),
        "Node" => bundle.nodes.push(node(object)),
        "PodMetrics" => return crate::evidence::kubelet::pod_metrics(bundle, object, file),
        // What bounds or moves pods is kept in a bundle for people; no verdict rests on it.
        "HorizontalPodAutoscaler" | "ScaledObject" | "PodDisruptionBudget" => {
            super::scaling::object(bundle, object)
        }
        "ResourceQuota" | "LimitRange" => {}
        // A workload's template tells the same about limits and flags as its pods do; it only stands in for them.
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" | "LeaderWorkerSet" => {
            // A group of leader and workers may have a template for its leader; the workers' is always there.
            let templates = [
                "/spec/template",
                "/spec/leaderWorkerTemplate/leaderTemplate",
                "/spec/leaderWorkerTemplate/workerTemplate",
            ];
            if let Some(template) = templates.iter().find_map(|t| object.pointer(t)) {
                let mut p = pod(template, file);
                p.name = str_at(object, "/metadata/name").to_owned();
                p.namespace = str_at(object, "/metadata/namespace").to_owned();
                p.managed = marks(object);
                bundle.templates.push(p);
            }
        }
        _ => return false,
    }
    true
}

pub(in crate::evidence) fn opt_at(v: &Value, pointer: &str) -> Option<String> {
    v.pointer(pointer).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
}

fn time_at(v: &Value, pointer: &str) -> Option<Stamp> {
    v.pointer(pointer).and_then(Value::as_str).and_then(parse_rfc3339)
}

fn memory_at(v: &Value, pointer: &str) -> Option<Bytes> {
    v.pointer(pointer).map(text_of).and_then(|t| parse_k8s_memory(&t))
}

fn pod(v: &Value, file: &str) -> Pod {
    let mut containers = Vec::new();
    for (spec, status, kind) in [
        ("/spec/initContainers", "/status/initContainerStatuses", ContainerKind::Init),
        ("/spec/containers", "/status/containerStatuses", ContainerKind::Main),
        ("/spec/ephemeralContainers", "/status/ephemeralContainerStatuses", ContainerKind::Ephemeral),
    ] {
        let statuses = list(v, status);
        let statuses = statuses.get(..MAX_CONTAINERS).unwrap_or(statuses);
        for c in list(v, spec).iter().take(MAX_CONTAINERS) {
            let files = mounts(c, list(v, "/spec/volumes"));
            containers.push(Container { files, ..container(c, kind, statuses) });
        }
        // A status without its spec (cut-down pastes) still tells how it died.
        for s in statuses {
            let name = str_at(s, "/name");
            if !containers.iter().any(|c| c.name == name) {
                containers.push(Container {
                    name: name.to_owned(),
                    kind,
                    image: str_at(s, "/image").to_owned(),
                    status: Some(container_status(s)),
                    ..Container::default()
                });
            }
        }
    }
    Pod {
        file: file.to_owned(),
        name: str_at(v, "/metadata/name").to_owned(),
        namespace: str_at(v, "/metadata/namespace").to_owned(),
        uid: str_at(v, "/metadata/uid").to_owned(),
        config_hash: v
            .pointer("/metadata/annotations")
            .and_then(|a| a.get("kubernetes.io/config.hash"))
            .and_then(Value::as_str)
            .map(str::to_owned),
        node: opt_at(v, "/spec/nodeName"),
        phase: str_at(v, "/status/phase").to_owned(),
        reason: opt_at(v, "/status/reason"),
        message: opt_at(v, "/status/message"),
        conditions: conditions(v),
        edited: v.pointer("/metadata/generation").and_then(Value::as_u64).is_some_and(|n| n > 1),
        deleting: v.pointer("/metadata/deletionTimestamp").is_some_and(|d| !d.is_null()),
        deletion: time_at(v, "/metadata/deletionTimestamp")
            .map(|at| (at, v.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64))),
        memory_limit: memory_at(v, "/spec/resources/limits/memory"),
        grace_seconds: v.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64),
        owner: list(v, "/metadata/ownerReferences")
            .first()
            .map(|o| (str_at(o, "/kind").to_owned(), str_at(o, "/name").to_owned())),
        containers,
        opens_devices: opens_devices(v),
        volumes: list(v, "/spec/volumes").iter().map(volume).collect(),
        selector: v
            .pointer("/spec/nodeSelector")
            .and_then(Value::as_object)
            .map(|s| s.iter().map(|(k, v)| (k.clone(), text_of(v))).collect())
            .unwrap_or_default(),
        managed: Vec::new(),
        labels: v
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .map(|l| l.iter().map(|(k, v)| (k.clone(), text_of(v))).collect())
            .unwrap_or_default(),
        extent: if list(v, "/spec/containers").is_empty() { Extent::Piece } else { Extent::Whole },
    }
}

/// Ways to a device that `resources` do not tell of.
fn opens_devices(v: &Value) -> bool {
    let privileged = |c: &Value| c.pointer("/securityContext/privileged") == Some(&Value::Bool(true));
    let machine = |v: &Value| {
        let path = str_at(v, "/hostPath/path");
        path == "/" || path == "/dev" || path.starts_with("/dev/") && path != "/dev/shm"
    };
    !list(v, "/spec/resourceClaims").is_empty()
        || ["/spec/containers", "/spec/initContainers"].iter().any(|at| list(v, at).iter().any(privileged))
        || list(v, "/spec/volumes").iter().any(machine)
}

fn conditions(v: &Value) -> Vec<Condition> {
    list(v, "/status/conditions")
        .iter()
        .map(|c| Condition {
            kind: str_at(c, "/type").to_owned(),
            holds: str_at(c, "/status") == "True",
            reason: str_at(c, "/reason").to_owned(),
            message: str_at(c, "/message").to_owned(),
        })
        .collect()
}

fn volume(v: &Value) -> Volume {
    Volume {
        name: str_at(v, "/name").to_owned(),
        memory_medium: str_at(v, "/emptyDir/medium").starts_with("Memory"),
        size_limit: memory_at(v, "/emptyDir/sizeLimit"),
    }
}

/// Labels and annotations of whoever deploys an object.
fn marks(object: &Value) -> Vec<(String, String)> {
    let of = |map: &str| object.pointer(&format!("/metadata/{map}")).and_then(Value::as_object);
    let all = ["labels", "annotations"].into_iter().filter_map(of).flatten();
    let whose = |k: &str| MANAGERS.iter().any(|m| k.starts_with(m));
    all.filter(|(k, _)| whose(k)).map(|(k, v)| (k.clone(), text_of(v))).collect()
}

/// Beginnings of keys with which Helm, Flux and Argo CD mark what they deploy.
const MANAGERS: &[&str] = &[
    "meta.helm.sh/",
    "app.kubernetes.io/managed-by",
    "helm.toolkit.fluxcd.io/",
    "kustomize.toolkit.fluxcd.io/",
    "argocd.argoproj.io/",
];

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

fn container(c: &Value, kind: ContainerKind, statuses: &[Value]) -> Container {
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

fn container_status(s: &Value) -> ContainerStatus {
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

/// Both `v1` and `events.k8s.io/v1` forms.
fn event(v: &Value, file: &str, lines: &LineIndex<'_>) -> Event {
    let object = if v.get("involvedObject").is_some() { "/involvedObject" } else { "/regarding" };
    let field = str_at(v, &format!("{object}/fieldPath"));
    let message =
        ["/message", "/note"].iter().map(|p| str_at(v, p)).find(|m| !m.is_empty()).unwrap_or_default();
    let first = ["/firstTimestamp", "/eventTime", "/deprecatedFirstTimestamp", "/metadata/creationTimestamp"];
    let last = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"];
    let count = ["/series/count", "/count", "/deprecatedCount"]
        .iter()
        .find_map(|p| v.pointer(p).and_then(Value::as_u64));
    let first = first.iter().find_map(|p| time_at(v, p));
    Event {
        file: file.to_owned(),
        line: lines.find(message),
        reason: str_at(v, "/reason").to_owned(),
        message: message.to_owned(),
        warning: str_at(v, "/type") == "Warning",
        object: (
            str_at(v, &format!("{object}/kind")).to_owned(),
            str_at(v, &format!("{object}/name")).to_owned(),
            str_at(v, &format!("{object}/uid")).to_owned(),
        ),
        container: field.split_once('{').and_then(|(_, c)| c.split_once('}')).map(|(c, _)| c.to_owned()),
        first,
        last: last.iter().find_map(|p| time_at(v, p)).or(first),
        count: count.unwrap_or(1),
    }
}

fn node(v: &Value) -> Node {
    let labels = v.pointer("/metadata/labels").and_then(Value::as_object);
    Node {
        name: str_at(v, "/metadata/name").to_owned(),
        conditions: conditions(v),
        labels: labels.map(|l| l.iter().map(|(k, v)| (k.clone(), text_of(v))).collect()).unwrap_or_default(),
        memory_capacity: memory_at(v, "/status/capacity/memory"),
        memory_allocatable: memory_at(v, "/status/allocatable/memory"),
    }
}

/// Finds the line of a value in the text it was parsed from, so that an event can be cited by line.
///
/// Items come in the order of the text: the search goes on from the last find, so that many events cost one pass.
struct LineIndex<'a> {
    text: &'a str,
    /// Byte offset of the last find and the number of line ends before it.
    last: Cell<(usize, u64)>,
    /// Bytes that may still be looked through.
    left: Cell<usize>,
}

impl<'a> LineIndex<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, last: Cell::new((0, 0)), left: Cell::new(MAX_SOUGHT) }
    }

    /// Line of the next place that holds the value, as JSON escapes it or plain.
    fn find(&self, value: &str) -> Option<u64> {
        if value.is_empty() || self.left.get() == 0 {
            return None;
        }
        let quoted = Value::String(value.to_owned()).to_string();
        let (from, lines) = self.last.get();
        let behind =
            self.text.get(from..).and_then(|t| t.find(&quoted).or_else(|| t.find(value)).map(|i| from + i));
        let (at, base, before) = match behind {
            Some(at) => (at, from, lines),
            // Out of order (a merged list): once from the start, as long as that does not cost for ever.
            None => {
                self.left.set(self.left.get().saturating_sub(self.text.len()));
                (self.text.get(..from)?.find(&quoted)?, 0, 0)
            }
        };
        let lines = before + self.text.get(base..at)?.bytes().filter(|b| *b == b'\n').count() as u64;
        self.last.set((at, lines));
        Some(lines + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(bundle: &mut Bundle, object: &Value, file: &str, text: &str) -> bool {
        add_all(bundle, std::slice::from_ref(object), file, text) == 1
    }

    #[test]
    fn a_pod_in_our_words() {
        let text = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"u"},
          "spec":{"nodeName":"w","initContainers":[{"name":"side","restartPolicy":"Always"}],
            "containers":[{"name":"c","image":"i","args":["--x",1],"resources":{"limits":{"memory":"6Gi","nvidia.com/mig-1g.10gb":"1"}},
              "volumeMounts":[{"name":"shm","mountPath":"/dev/shm"}]}],
            "volumes":[{"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"1Gi"}}]},
          "status":{"phase":"Running","containerStatuses":[{"name":"c","restartCount":2,"containerID":"containerd://abc",
            "state":{"waiting":{"reason":"CrashLoopBackOff"}},
            "lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-09-03T02:10:49Z"}}}]}}"#;
        let mut b = Bundle::default();
        assert!(add(&mut b, &serde_json::from_str(text).unwrap(), "pod.json", text));
        let p = &b.pods[0];
        assert_eq!(p.containers[0].kind, ContainerKind::Sidecar);
        let c = &p.containers[1];
        assert_eq!(c.args, ["--x", "1"]);
        assert_eq!(c.memory_limit, Some(Bytes(6 << 30)));
        assert_eq!(c.devices, [("nvidia.com/mig-1g.10gb".to_owned(), 1)]);
        assert_eq!(p.memory_mounts(c), [("/dev/shm", Some(Bytes(1 << 30)))]);
        let t = c.status.as_ref().unwrap().termination().unwrap();
        assert_eq!((t.exit_code, t.reason.as_str()), (Some(137), "OOMKilled"));
    }

    #[test]
    fn events_of_both_apis_and_their_lines() {
        let text = "{\"kind\":\"List\",\"items\":[\n{\"kind\":\"Event\",\"reason\":\"Killing\",\n\"message\":\"a \\\"b\\\"\",\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\",\"fieldPath\":\"spec.containers{c}\"}},\n{\"kind\":\"Event\",\"note\":\"n\",\"regarding\":{\"kind\":\"Node\"},\"series\":{\"count\":7}}]}";
        let mut b = Bundle::default();
        assert!(add(&mut b, &serde_json::from_str(text).unwrap(), "e.json", text));
        assert_eq!((b.events[0].line, b.events[0].container.as_deref()), (Some(3), Some("c")));
        assert_eq!((b.events[1].count, b.events[1].object.0.as_str()), (7, "Node"));
    }
}
