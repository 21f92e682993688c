//! The way out of a crash loop and back: a report's patch on a real Deployment, and its rollback.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Ran, create, dualplane, kubectl, run, until};
use crate::permissions::kubeconfig;

const NAMESPACE: &str = "e2e-apply";

fn deployment(limit: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: llm, namespace: {NAMESPACE}}}\nspec:\n  replicas: 1\n  \
         selector: {{matchLabels: {{app: llm}}}}\n  strategy: {{rollingUpdate: {{maxUnavailable: 0, maxSurge: 1}}}}\n  template:\n    \
         metadata: {{labels: {{app: llm}}}}\n    spec:\n      terminationGracePeriodSeconds: 1\n      containers:\n      \
         - name: vllm\n        image: docker.io/vllm/vllm-openai:v0.11.0\n        imagePullPolicy: Never\n        \
         command: [vllm, serve, Qwen/Qwen3-32B]\n        env: [{{name: VICTIM, value: grow 80 16 then serve 8000}}, {{name: HF_TOKEN, value: hf_planted0planted1planted2planted3xy}}]\n        \
         readinessProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 1}}\n        \
         resources: {{limits: {{memory: {limit}}}, requests: {{memory: {limit}}}}}\n      \
         - name: sidecar\n        image: registry.local/busybox:1\n        imagePullPolicy: Never\n        command: [sleep, \"100000\"]\n        resources: {{limits: {{memory: 32Mi}}}}\n"
    )
}

fn limit() -> String {
    let path = "jsonpath={.spec.template.spec.containers[?(@.name=='vllm')].resources.limits.memory}";
    kubectl(&["get", "deploy", "llm", "-n", NAMESPACE, "-o", path])
}

fn oom_killed() -> bool {
    let statuses = kubectl(&[
        "get",
        "pods",
        "-n",
        NAMESPACE,
        "-o",
        "jsonpath={.items[*].status.containerStatuses[*].lastState.terminated.reason}",
    ]);
    statuses.contains("OOMKilled")
}

#[test]
fn a_reports_fix_is_applied_helps_and_is_rolled_back() {
    let state = tempfile::tempdir().unwrap();
    let with = |args: &[&str]| {
        let mut c = dualplane();
        c.args(args).env("XDG_STATE_HOME", state.path());
        Ran::of(&mut c)
    };
    create(&deployment("160Mi"));
    kubectl(&["rollout", "status", "deploy/llm", "-n", NAMESPACE, "--timeout=60s"]);
    create(&deployment("64Mi"));
    until("the second revision is not OOM-killed", || oom_killed().then_some(()));

    let report = state.path().join("report.json");
    let ran = run(&["triage", "deploy/llm", "-n", NAMESPACE, "-o", "json"]).ok();
    std::fs::write(&report, &ran.out).unwrap();
    let report = report.to_string_lossy().into_owned();

    // Shown, and nothing changed: by --dry-run, and because nobody is there to be asked.
    let shown = with(&["apply", &report, "--dry-run"]).ok();
    let text = shown.text() + &shown.err;
    assert!(
        text.contains("-            memory: 64Mi") && text.contains("+            memory: 160Mi"),
        "{text}"
    );
    assert!(!text.contains("hf_planted"), "{text}");
    let asked = with(&["apply", &report]);
    assert_eq!(asked.code, Some(7), "{}", asked.err);
    assert!(asked.err.contains("--yes"), "{}", asked.err);
    assert_eq!(limit(), "64Mi");

    with(&["apply", &report, "--yes"]).ok();
    assert_eq!(limit(), "160Mi");
    assert_eq!(
        kubectl(&[
            "get",
            "deploy",
            "llm",
            "-n",
            NAMESPACE,
            "-o",
            "jsonpath={.spec.template.spec.containers[*].name}"
        ]),
        "vllm sidecar"
    );
    kubectl(&["rollout", "status", "deploy/llm", "-n", NAMESPACE, "--timeout=90s"]);
    until("pods of the lowered limit are there", || (!oom_killed()).then_some(()));

    let list: Value = with(&["rollback", "-o", "json"]).ok().json();
    assert!(list.to_string().contains("\"applied\""), "{list}");

    // Somebody else's value is not taken back unseen.
    kubectl(&["set", "resources", "deploy/llm", "-n", NAMESPACE, "-c", "vllm", "--limits=memory=200Mi"]);
    let refused = with(&["rollback", "--last", "--yes"]);
    assert_eq!(refused.code, Some(7), "{}", refused.err);
    assert!((refused.err.clone() + &refused.text()).contains("200Mi"), "{}", refused.err);
    assert_eq!(limit(), "200Mi");
    kubectl(&["set", "resources", "deploy/llm", "-n", NAMESPACE, "-c", "vllm", "--limits=memory=160Mi"]);
    with(&["rollback", "--last", "--yes"]).ok();
    assert_eq!(limit(), "64Mi");

    // Who may only read changes nothing, and is told which permission it would take.
    create(&format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: reader, namespace: {NAMESPACE}}}\n---\n\
        apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: reader, namespace: {NAMESPACE}}}\n\
        roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}\n\
        subjects: [{{kind: ServiceAccount, name: reader, namespace: {NAMESPACE}}}]\n"
    ));
    let token = kubectl(&["create", "token", "reader", "-n", NAMESPACE]);
    let config = kubeconfig(state.path(), token.trim());
    std::thread::sleep(Duration::from_secs(1));
    let denied = with(&["apply", &report, "--yes", "--kubeconfig", &config.to_string_lossy()]);
    assert_ne!(denied.code, Some(0));
    assert!(denied.err.contains("patch deployments.apps"), "{}", denied.err);
    assert_eq!(limit(), "64Mi");
    kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
}
