//! What a change does to the pods of a workload, in sentences.

use serde_json::Value;

use dualplane_base::json::str_at;

use super::diff::Edit;
use super::path::{Step, at};

/// Whether a change reaches the pod templates of a workload.
#[must_use]
pub fn touches_pods(edits: &[Edit]) -> bool {
    edits.iter().any(|e| {
        let names =
            e.path.iter().take(3).filter_map(|s| if let Step::Key(k) = s { Some(k.as_str()) } else { None });
        names
            .into_iter()
            .any(|k| ["template", "leaderTemplate", "workerTemplate", "leaderWorkerTemplate"].contains(&k))
    })
}

/// What happens to the pods, given the object after the change and the disruption budgets of its namespace.
#[must_use]
pub fn rollout(object: &Value, edits: &[Edit], budgets: &[Value]) -> Vec<String> {
    let kind = str_at(object, "/kind");
    let mut out = Vec::new();
    if kind == "Pod" {
        out.extend(resized(object, edits));
        return out;
    }
    if kind == "ConfigMap" {
        out.push("Servers read it when they start: every other workload that uses it takes the change with its next pod.".into());
        return out;
    }
    if !touches_pods(edits) {
        out.push("The pod template does not change: no pod restarts.".into());
        return out;
    }
    let pods = object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    match kind {
        "Deployment" => deployment(object, pods, &mut out),
        "StatefulSet" => stateful(object, pods, &mut out),
        "DaemonSet" => {
            let pods = object.pointer("/status/desiredNumberScheduled").and_then(Value::as_u64).unwrap_or(0);
            if str_at(object, "/spec/updateStrategy/type") == "OnDelete" {
                out.push(format!(
                    "No pod restarts by itself (OnDelete): delete each of the {pods} pods to replace it."
                ));
            } else {
                let most = value(object, "/spec/updateStrategy/rollingUpdate/maxUnavailable", "1");
                out.push(format!("All {pods} pods restart, node by node (at most {most} unavailable)."));
            }
        }
        "ReplicaSet" => out.push(
            "A ReplicaSet does not replace its pods: delete each pod to recreate it from the new template."
                .into(),
        ),
        "LeaderWorkerSet" => {
            let size = object.pointer("/spec/leaderWorkerTemplate/size").and_then(Value::as_u64).unwrap_or(1);
            out.push(format!(
                "All {pods} groups of {size} pods restart, each as a whole (maxUnavailable {}).",
                value(object, "/spec/rolloutStrategy/rollingUpdateConfiguration/maxUnavailable", "1")
            ));
        }
        _ => out.push(format!("The controller of the {kind} decides when its pods restart.")),
    }
    let labels = object.pointer("/spec/template/metadata/labels").unwrap_or(&Value::Null);
    for budget in budgets.iter().filter(|b| selects(b, labels)) {
        out.push(format!(
            "PodDisruptionBudget {} does not delay this: it limits evictions, not rollouts.",
            str_at(budget, "/metadata/name")
        ));
    }
    out
}

fn deployment(object: &Value, pods: u64, out: &mut Vec<String>) {
    if object.pointer("/spec/paused").and_then(Value::as_bool) == Some(true) {
        out.push("The Deployment is paused: no pod restarts until kubectl rollout resume.".into());
        return;
    }
    if str_at(object, "/spec/strategy/type") == "Recreate" {
        out.push(format!(
            "{} at once, then new ones start (Recreate): there is downtime in between.",
            all(pods, "end", "ends")
        ));
        return;
    }
    let surge = value(object, "/spec/strategy/rollingUpdate/maxSurge", "25%");
    let unavailable = value(object, "/spec/strategy/rollingUpdate/maxUnavailable", "25%");
    out.push(format!(
        "{} (RollingUpdate, maxSurge {surge}, maxUnavailable {unavailable}).",
        all(pods, "are replaced", "is replaced")
    ));
    let gpus = gpus(object);
    if surge != "0" && surge != "0%" && !gpus.is_empty() {
        out.push(format!(
            "A new pod starts alongside the old ones and needs its own {gpus} until an old pod ends."
        ));
    }
}

fn stateful(object: &Value, pods: u64, out: &mut Vec<String>) {
    if str_at(object, "/spec/updateStrategy/type") == "OnDelete" {
        out.push(format!(
            "No pod restarts by itself (OnDelete): delete each of the {} to replace it.",
            count(pods)
        ));
        return;
    }
    let partition =
        object.pointer("/spec/updateStrategy/rollingUpdate/partition").and_then(Value::as_u64).unwrap_or(0);
    out.push(if partition > 0 {
        format!(
            "Of {}, those with ordinal {partition} and above are replaced, highest ordinal first \
            (partition).",
            count(pods)
        )
    } else {
        format!("{}, one at a time, highest ordinal first.", all(pods, "are replaced", "is replaced"))
    });
    if str_at(object, "/spec/podManagementPolicy") != "Parallel" {
        out.push(
            "A pod that is not ready can block the rollout of a StatefulSet (OrderedReady): if it stalls, \
            delete that pod."
                .into(),
        );
    }
}

/// Containers of a pod that a resize restarts.
fn resized(object: &Value, edits: &[Edit]) -> Vec<String> {
    let containers = object.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    containers
        .filter_map(|c| {
            let name = c.get("name")?.as_str()?;
            let own = format!("[{name}].resources");
            let changed: Vec<String> =
                edits.iter().map(|e| at(&e.path)).filter(|p| p.contains(&own)).collect();
            if changed.is_empty() {
                return None;
            }
            let policies = c.get("resizePolicy").and_then(Value::as_array).into_iter().flatten();
            let restarts = policies.into_iter().any(|p| {
                str_at(p, "/restartPolicy") == "RestartContainer"
                    && changed.iter().any(|c| c.ends_with(str_at(p, "/resourceName")))
            });
            Some(if restarts {
                format!("Container {name} restarts with the new resources (its resizePolicy says so).")
            } else {
                format!("Container {name} keeps running; the kubelet applies the new resources in place.")
            })
        })
        .collect()
}

/// `1 × nvidia.com/gpu` of all containers.
fn gpus(object: &Value) -> String {
    let containers =
        object.pointer("/spec/template/spec/containers").and_then(Value::as_array).into_iter().flatten();
    let limits = containers.filter_map(|c| c.pointer("/resources/limits")?.as_object()).flatten();
    let gpus = limits.filter(|(k, _)| k.contains("gpu") || k.starts_with("nvidia.com/"));
    let words =
        gpus.map(|(k, v)| format!("{} × {k}", v.as_str().map_or_else(|| v.to_string(), ToOwned::to_owned)));
    words.collect::<Vec<_>>().join(", ")
}

/// Whether a budget's `matchLabels` are all there. A budget with expressions is not judged.
fn selects(budget: &Value, labels: &Value) -> bool {
    let selector = budget.pointer("/spec/selector");
    let wanted = selector.and_then(|s| s.get("matchLabels")).and_then(Value::as_object);
    selector.is_some_and(|s| s.get("matchExpressions").is_none())
        && wanted.is_some_and(|w| !w.is_empty() && w.iter().all(|(k, v)| labels.get(k) == Some(v)))
}

fn all(pods: u64, many: &str, one: &str) -> String {
    if pods == 1 { format!("The one pod {one}") } else { format!("All {pods} pods {many}") }
}

fn count(pods: u64) -> String {
    if pods == 1 { "1 pod".into() } else { format!("{pods} pods") }
}

fn value(of: &Value, pointer: &str, default: &str) -> String {
    match of.pointer(pointer) {
        Some(Value::String(s)) => s.clone(),
        Some(v) => v.to_string(),
        None => default.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edit(path: &[&str]) -> Vec<Edit> {
        let path = path.iter().map(|p| Step::Key((*p).to_owned())).collect();
        vec![Edit { path, before: None, after: Some(json!(1)), index: None }]
    }

    #[test]
    fn each_kind_says_what_restarts() {
        let template = edit(&["spec", "template", "spec"]);
        let says = |object: Value| rollout(&object, &template, &[]).join(" ");
        let gpu = json!({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}});
        let d = says(
            json!({"kind": "Deployment", "spec": {"replicas": 3, "template": gpu, "strategy": {"rollingUpdate": {"maxSurge": 1}}}}),
        );
        assert!(
            d.contains("All 3 pods") && d.contains("maxSurge 1") && d.contains("2 × nvidia.com/gpu"),
            "{d}"
        );
        assert!(says(json!({"kind": "Deployment", "spec": {"paused": true}})).contains("paused"));
        assert!(
            says(json!({"kind": "Deployment", "spec": {"strategy": {"type": "Recreate"}}}))
                .contains("The one pod ends at once")
        );
        assert!(says(json!({"kind": "StatefulSet", "spec": {"replicas": 2}})).contains("OrderedReady"));
        assert!(
            says(json!({"kind": "StatefulSet", "spec": {"updateStrategy": {"type": "OnDelete"}}}))
                .contains("OnDelete")
        );
        assert!(says(json!({"kind": "ReplicaSet"})).contains("does not replace"));
        assert!(says(json!({"kind": "LeaderWorkerSet", "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4}}})).contains("2 groups of 4"));
        let scale = rollout(&json!({"kind": "Deployment"}), &edit(&["spec", "replicas"]), &[]);
        assert!(scale[0].contains("no pod restarts"));
    }

    #[test]
    fn budgets_of_these_pods_are_named() {
        let object =
            json!({"kind": "Deployment", "spec": {"template": {"metadata": {"labels": {"app": "x"}}}}});
        let budget = |app: &str| json!({"metadata": {"name": app}, "spec": {"selector": {"matchLabels": {"app": app}}}});
        let said = rollout(&object, &edit(&["spec", "template"]), &[budget("x"), budget("y")]).join(" ");
        assert!(said.contains("PodDisruptionBudget x") && !said.contains("Budget y"), "{said}");
    }
}
