//! Which object it is, and where it goes in the bundle: Kubernetes JSON (also from YAML) in our own words. Missing or odd
//! fields are skipped, never an error.

use dualplane_base::json::{list, str_at, text_of};
use serde_json::Value;

use super::container::MAX_CONTAINERS;
use super::event::{LineIndex, event};
use super::fields::{conditions, memory_at};
use super::pod::pod;
use crate::evidence::Bundle;
use crate::evidence::kube_model::Node;

/// Lists in lists are unfolded this deep; nobody nests deeper without meaning harm.
const MAX_DEPTH: u32 = 4;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::kube_model::ContainerKind;
    use crate::units::Bytes;

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
