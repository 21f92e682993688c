//! One server over two pods: the rank that is OOM-killed has the cause, and the other one, which only tells of it, leads there.
//!
//! `$RANKS_NODE` is where the killed rank runs, if not where the scheduler likes: the second node of `e2e/run second`, whose kernel
//! is another one.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Ran, create, dualplane, kubectl, run, succeeds, until};

const NS: &str = "e2e-ranks";

/// What the surviving rank prints is NCCL's, as torch logs it.
const PODS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: e2e-ranks}
---
apiVersion: v1
kind: Pod
metadata: {name: rank-0, namespace: e2e-ranks, labels: {app: ranks}}
spec:
  restartPolicy: Never
  containers:
  - name: server
    image: registry.local/busybox:1
    imagePullPolicy: Never
    command: [sh, -c]
    args:
    - |
      echo "INFO 11-23 10:00:00 [parallel_state.py:1208] rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank 0"
      sleep 15
      echo "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
      exit 1
    resources: {requests: {memory: 32Mi}, limits: {memory: 32Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: rank-1, namespace: e2e-ranks, labels: {app: ranks}}
spec:
  restartPolicy: Never
  NODE
  containers:
  - name: server
    image: registry.local/busybox:1
    imagePullPolicy: Never
    command: [tail, /dev/zero]
    resources: {requests: {memory: 32Mi}, limits: {memory: 32Mi}}
"#;

fn ended(pod: &str) -> Option<()> {
    let at = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
    (!kubectl(&["get", "pod", pod, "-n", NS, "-o", at]).is_empty()).then_some(())
}

#[test]
fn a_rank_that_tells_of_another_one_leads_to_its_pod() {
    let _ = succeeds(&["delete", "namespace", NS, "--ignore-not-found", "--wait"]);
    let place = std::env::var("RANKS_NODE").map(|node| {
        format!(
            "nodeSelector: {{kubernetes.io/hostname: {node}}}\n  tolerations: [{{key: dualplane.dev/second}}]"
        )
    });
    let pods = PODS.replace("NODE", place.as_deref().unwrap_or("terminationGracePeriodSeconds: 1"));
    let (namespace, pods) = pods.split_once("---\n").unwrap();
    create(namespace);
    until("no service account", || succeeds(&["get", "serviceaccount", "default", "-n", NS]).then_some(()));
    create(pods);
    for pod in ["rank-0", "rank-1"] {
        until("a rank has not ended", || ended(pod));
    }

    let told = run(&["triage", "pod/rank-0", "-n", NS, "-o", "json"]).ok().json();
    assert_eq!(told["verdict"]["class"], "unknown", "{told}");
    let asked = |gap: &Value| gap["what"] == "the pods of the other ranks";
    let missing = told["missing"].as_array().cloned().unwrap_or_default();
    let command = missing.iter().find(|g| asked(g)).unwrap_or_else(|| panic!("{missing:?}"));
    let command = command["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words.first(), Some(&"dualplane"), "{command}");

    // As it is printed.
    let mut c = Command::new(dualplane().get_program());
    let all = Ran::of(c.args(&words[1..]).args(["-o", "json"])).ok().json();
    let of = |pod: &str| {
        let items = all["items"].as_array().unwrap();
        let found = items.iter().find(|i| i["subject"]["pod"] == pod);
        found.unwrap_or_else(|| panic!("{pod} is not in {all}"))["verdict"]["class"].clone()
    };
    assert_eq!(of("rank-1"), "host_oom_killed", "{all}");
    kubectl(&["delete", "namespace", NS, "--wait=false"]);
}
