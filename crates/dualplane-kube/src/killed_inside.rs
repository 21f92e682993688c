//! Pods in which the kernel killed processes while the container lived on. Their status says nothing of it: the node's kernel
//! log does, and where that may not be read, the Event of the agent on the node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;

use crate::agents_events;
use crate::api::{Api, path};
use crate::capture::kernel_log::{TAIL, pods_in};
use crate::find::text;

/// Nodes whose kernel log is looked at; a serving cluster has tens.
const MAX_NODES: usize = 64;
/// Nodes at a time.
const AT_ONCE: usize = 6;
/// For one request: who asks what failed does not wait for a node that hangs.
const TIME: Duration = Duration::from_secs(3);
/// The file with the kernel's lines, where the node's system logger keeps one.
const KERNEL_LOGS: [&str; 2] = ["kern.log", "messages"];

/// A pod that seems well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Living {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) node: String,
}

impl Living {
    /// `None` of a pod of which no container runs.
    pub(crate) fn of(pod: &Value) -> Option<Self> {
        (text(pod, "/status/phase") == "Running").then(|| Self {
            namespace: text(pod, "/metadata/namespace"),
            name: text(pod, "/metadata/name"),
            uid: text(pod, "/metadata/uid"),
            node: text(pod, "/spec/nodeName"),
        })
    }
}

/// Those of the pods in which something was killed, as they are now.
pub(crate) async fn among(api: &Api, living: &[Living], everywhere: bool) -> Vec<Value> {
    if living.is_empty() {
        return Vec::new();
    }
    let mut uids = told_by_agents(api, everywhere).await;
    uids.extend(told_by_kernels(api, living).await);
    let mut out = Vec::new();
    for l in living.iter().filter(|l| uids.contains(&l.uid)) {
        let list = path::namespaced("v1", &l.namespace, "pods");
        if let Ok(pod) = api.object(&path::named(&list, &l.name)).await
            && text(&pod, "/metadata/uid") == l.uid
        {
            out.push(pod);
        }
    }
    out
}

/// UIDs of pods with an Event of the agent.
async fn told_by_agents(api: &Api, everywhere: bool) -> BTreeSet<String> {
    let uid = |event: Value| Some(Value::from(text(&event, "/involvedObject/uid")));
    let namespace = (!everywhere).then(|| api.namespace());
    agents_events::list(api, namespace, uid)
        .await
        .iter()
        .filter_map(Value::as_str)
        .filter(|u| !u.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

/// UIDs of those pods that records of the OOM killer name.
async fn told_by_kernels(api: &Api, living: &[Living]) -> BTreeSet<String> {
    let mut by_node: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for l in living.iter().filter(|l| !l.node.is_empty()) {
        by_node.entry(&l.node).or_default().push(&l.uid);
    }
    let looks = by_node.into_iter().take(MAX_NODES).map(|(node, uids)| async move {
        let log = kernel_log(api, node).await.unwrap_or_default();
        named(&log, &uids)
    });
    stream::iter(looks).buffer_unordered(AT_ONCE).concat().await.into_iter().collect()
}

/// The same end of the log that a capture of these pods reads: it is asked for once.
async fn kernel_log(api: &Api, node: &str) -> Option<Arc<Vec<u8>>> {
    let node = path::named(&path::cluster("v1", "nodes"), node);
    for name in KERNEL_LOGS {
        match api.tail(&format!("{node}/proxy/logs/{name}"), TAIL, TIME).await {
            Ok(tail) => return Some(tail.text),
            Err(e) if e.is_absent() => {}
            Err(_) => return None,
        }
    }
    None
}

/// Which of the pods stand in lines of a kill: `oom-kill:… task_memcg=…` says whose the killed task was.
fn named(log: &[u8], uids: &[&str]) -> Vec<String> {
    let mut out = BTreeSet::new();
    for line in log.split(|b| *b == b'\n') {
        let line = String::from_utf8_lossy(line);
        // Since Linux 4.19; before, "Task in GROUP killed as a result of limit of GROUP".
        let group = match (line.split_once("task_memcg="), line.split_once("Task in ")) {
            (Some((_, after)), _) => after.split([',', ' ']).next(),
            (None, Some((_, after))) if after.contains(" killed as a result of limit") => {
                after.split(' ').next()
            }
            _ => None,
        };
        let Some(group) = group else { continue };
        out.extend(pods_in(group).filter(|u| uids.contains(&u.as_str())));
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_told_by_the_group_of_the_task_that_was_killed() {
        let (a, b) = ("3eeee5db-6611-4802-9456-dfd27caa2b83", "9ebd9238-4ea3-417e-975f-99e0d23c5718");
        let v2 = format!(
            "Nov 21 n kernel: oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/kubepods/pod{b},task_memcg=/kubepods/burstable/pod{a}/0123,task=x,pid=1,uid=0\n"
        );
        assert_eq!(named(v2.as_bytes(), &[a, b]), [a], "the limit of one, the task of another");
        let systemd = format!(
            "kernel: oom-kill:task_memcg=/kubepods-pod{}.slice/cri.scope,task=x",
            a.replace('-', "_")
        );
        assert_eq!(named(systemd.as_bytes(), &[a, b]), [a]);
        let old =
            format!("kernel: Task in /kubepods/pod{b}/1 killed as a result of limit of /kubepods/pod{b}\n");
        assert_eq!(named(old.as_bytes(), &[a, b]), [b]);
        let other = format!("kernel: cgroup: fork rejected by pids controller in /kubepods/pod{a}\n");
        assert_eq!(named(other.as_bytes(), &[a, b, ""]), Vec::<String>::new());
    }

    #[test]
    fn only_pods_that_run_are_looked_up() {
        let pod = |phase: &str| {
            serde_json::json!({"metadata": {"namespace": "n", "name": "p", "uid": "u"}, "spec": {"nodeName": "x"},
                "status": {"phase": phase}})
        };
        assert!(Living::of(&pod("Running")).is_some_and(|l| l.node == "x" && l.uid == "u"));
        assert_eq!(Living::of(&pod("Succeeded")), None);
    }
}
