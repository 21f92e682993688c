//! From a target to its pods.

use dualplane_base::order::Order as _;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{Api, ApiError, path};
use crate::killed_inside::{self, Living};
use crate::target::{Kind, Named, Target};

/// What belongs to a target.
#[derive(Debug, Default)]
pub struct Found {
    /// The workload, where one was named.
    pub workload: Option<Value>,
    /// Its pods, by namespace and name.
    pub pods: Vec<Value>,
    /// More pods were there than were read.
    pub cut: bool,
    /// UIDs of pods that are wanted although their status is well: processes in them were killed.
    pub killed_inside: BTreeSet<String>,
    /// Pods that were seen, the healthy ones among them.
    pub seen: usize,
}

/// Which pods are wanted of those that a target has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodFilter {
    /// Each.
    All,
    /// Those that restarted, failed or do not start.
    Failed,
}

/// Finds the pods of a target in the namespace of `api`, or in all.
///
/// # Errors
/// See [`ApiError`].
pub async fn find(api: &Api, target: &Target, everywhere: bool, which: PodFilter) -> Result<Found, ApiError> {
    let now = Timestamp::now();
    let mut living: Vec<Living> = Vec::new();
    let keep = |pod: Value| {
        if which == PodFilter::All || has_failed(&pod, now) {
            return Some(pod);
        }
        living.extend(Living::of(&pod));
        None
    };
    let mut found = match target {
        Target::One(named) if named.kind == Kind::Pod => {
            let pods = path::namespaced("v1", api.namespace(), "pods");
            let pod = named_object(api, named, &pods).await?;
            Found { pods: vec![pod], seen: 1, ..Found::default() }
        }
        Target::One(named) => of_workload(api, named, keep).await?,
        Target::Selector(selector) => {
            listed(api, everywhere, &[("labelSelector", selector.as_str())], keep).await?
        }
        Target::Namespace => listed(api, everywhere, &[], keep).await?,
    };
    let inside = killed_inside::among(api, &living, everywhere).await;
    found.killed_inside = inside.iter().map(|p| text(p, "/metadata/uid")).collect();
    found.pods.extend(inside);
    found.pods.order_by_key(|p| (text(p, "/metadata/namespace"), text(p, "/metadata/name")));
    Ok(found)
}

async fn listed(
    api: &Api,
    everywhere: bool,
    query: &[(&str, &str)],
    mut keep: impl FnMut(Value) -> Option<Value>,
) -> Result<Found, ApiError> {
    let mut seen = 0;
    let counted = |pod: Value| {
        seen += 1;
        keep(pod)
    };
    let base = if everywhere {
        path::cluster("v1", "pods")
    } else {
        path::namespaced("v1", api.namespace(), "pods")
    };
    let list = api.list(&base, query, counted).await?;
    if seen == 0 && !everywhere {
        namespace_is_there(api).await?;
    }
    Ok(Found { pods: list.items, cut: list.cut, seen, ..Found::default() })
}

/// An object; where it is not there, the error says where it was looked for: most often the place is wrong.
async fn named_object(api: &Api, named: &Named, list: &str) -> Result<Value, ApiError> {
    match api.object(&path::named(list, &named.name)).await {
        Err(ApiError::NotFound(_)) => {
            namespace_is_there(api).await?;
            let context =
                api.identity().context.as_ref().map_or(String::new(), |c| format!(" of context {c}"));
            Err(ApiError::NotFound(format!("{named} in namespace {}{context}", api.namespace())))
        }
        other => other,
    }
}

/// A list of a namespace that does not exist is empty, which must not read as "nothing failed".
async fn namespace_is_there(api: &Api) -> Result<(), ApiError> {
    let list = path::cluster("v1", "namespaces");
    match api.get(&path::named(&list, api.namespace())).await {
        Err(ApiError::NotFound(_)) => Err(ApiError::NotFound(format!("namespace {}", api.namespace()))),
        // Whoever may not look at namespaces is told how many pods there were.
        _ => Ok(()),
    }
}

async fn of_workload(
    api: &Api,
    named: &Named,
    keep: impl FnMut(Value) -> Option<Value>,
) -> Result<Found, ApiError> {
    let kind = named.kind;
    let list = path::namespaced(kind.group_version(), api.namespace(), kind.resource());
    let workload = named_object(api, named, &list).await?;
    let selector = match kind {
        Kind::LeaderWorkerSet => Some(format!("leaderworkerset.sigs.k8s.io/name={}", named.name)),
        _ => workload.pointer("/spec/selector").and_then(selector),
    };
    let mut found = match selector {
        Some(s) => listed(api, false, &[("labelSelector", s.as_str())], keep).await?,
        None => Found::default(),
    };
    found.workload = Some(workload);
    Ok(found)
}

/// A label selector as the API takes it in a query.
fn selector(of: &Value) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(labels) = of.get("matchLabels").and_then(Value::as_object) {
        parts.extend(labels.iter().filter_map(|(k, v)| Some(format!("{k}={}", v.as_str()?))));
    }
    for e in of.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = e.get("key")?.as_str()?;
        let values: Vec<&str> = e
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match e.get("operator")?.as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    // An empty selector means all pods here, but none to a workload.
    (!parts.is_empty()).then(|| parts.join(","))
}

/// A pod that stays without a container this long after its creation does not start: images are pulled for minutes,
/// but the kubelet says so.
const STARTS_WITHIN_S: i64 = 120;
/// The sandbox takes a second or two, volumes some more.
const SANDBOX_WITHIN_S: i64 = 30;

/// Whether a pod restarted, failed, or does not start.
#[must_use]
pub fn has_failed(pod: &Value, now: Timestamp) -> bool {
    if text(pod, "/status/phase") == "Failed" {
        return true;
    }
    let failed = statuses(pod).any(|s| {
        s.get("restartCount").and_then(Value::as_u64).unwrap_or(0) > 0
            || s.pointer("/state/terminated/exitCode").and_then(Value::as_i64).unwrap_or(0) != 0
            || s.pointer("/lastState/terminated").is_some()
            // The main process may end well after the kernel took its worker.
            || text(s, "/state/terminated/reason") == "OOMKilled"
            || s.pointer("/state/waiting/reason")
                .and_then(Value::as_str)
                .is_some_and(|r| r.ends_with("BackOff") || r.ends_with("Error") || r.starts_with("ErrImage"))
    });
    failed || does_not_start(pod, now)
}

fn does_not_start(pod: &Value, now: Timestamp) -> bool {
    if text(pod, "/status/phase") != "Pending" || text(pod, "/spec/nodeName").is_empty() {
        return false;
    }
    let older =
        |at: &str, s: i64| at.parse::<Timestamp>().is_ok_and(|at| now.as_second() - at.as_second() > s);
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let no_sandbox = conditions
        .filter(|c| text(c, "/type") == "PodReadyToStartContainers" && text(c, "/status") == "False")
        .any(|c| older(&text(c, "/lastTransitionTime"), SANDBOX_WITHIN_S));
    no_sandbox || older(&text(pod, "/metadata/creationTimestamp"), STARTS_WITHIN_S)
}

/// What a pod's status tells of its containers, those that serve first.
pub(crate) fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"]
        .iter()
        .filter_map(move |s| pod.pointer(&format!("/status/{s}"))?.as_array())
        .flatten()
}

/// A string of an object; empty where there is none.
pub(crate) fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_of_workloads_become_queries() {
        let s = json!({"matchLabels": {"app": "vllm"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "x", "operator": "DoesNotExist"}]});
        assert_eq!(selector(&s).as_deref(), Some("app=vllm,tier in (a,b),!x"));
        assert_eq!(selector(&json!({})), None);
    }

    #[test]
    fn failed_means_restarted_failed_or_stuck() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let status = |s: Value| json!({"status": {"phase": "Running", "containerStatuses": [s]}});
        assert!(!has_failed(&status(json!({"restartCount": 0, "state": {"running": {}}})), now));
        assert!(has_failed(&status(json!({"restartCount": 2, "state": {"running": {}}})), now));
        assert!(has_failed(
            &status(json!({"restartCount": 0, "state": {"terminated": {"exitCode": 1}}})),
            now
        ));
        assert!(!has_failed(
            &status(json!({"restartCount": 0, "state": {"terminated": {"exitCode": 0}}})),
            now
        ));
        let child =
            json!({"restartCount": 0, "state": {"terminated": {"exitCode": 0, "reason": "OOMKilled"}}});
        assert!(has_failed(&status(child), now));
        assert!(has_failed(&json!({"status": {"phase": "Failed", "reason": "Evicted"}}), now));
        let stuck = |at: &str| {
            json!({"metadata": {"creationTimestamp": at}, "spec": {"nodeName": "n"},
            "status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}})
        };
        assert!(has_failed(&stuck("2026-11-21T11:50:00Z"), now));
        assert!(!has_failed(&stuck("2026-11-21T11:59:30Z"), now));
    }
}
