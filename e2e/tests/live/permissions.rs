//! Each permission that is missing costs its own source and no other, and the gap names it.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Ran, create, dualplane, kubectl, manifest};

/// A permission, and the source that must say that it is missing.
const DENIED: &[(&str, &str, &str)] = &[
    ("pods/log", "logs/vllm (previous)", "get pods/log"),
    ("events", "events", "list events"),
    ("nodes", "node", "get nodes"),
    ("nodes/proxy", "kubelet summary", "get nodes/"),
    ("replicasets", "workload", "get replicasets.apps"),
    ("resourcequotas", "policy", "list resourcequotas"),
];

/// What the reader may do, by resource: deploy/rbac.yaml in short.
const ALL: &[(&str, &str, &str)] = &[
    ("", "pods", "get,list"),
    ("", "pods/log", "get"),
    ("", "pods/proxy", "get"),
    ("", "events", "get,list"),
    ("", "nodes", "get,list"),
    ("", "nodes/proxy", "get"),
    ("", "resourcequotas", "list"),
    ("", "limitranges", "list"),
    ("apps", "replicasets", "get,list"),
    ("apps", "deployments", "get,list"),
    ("apps", "controllerrevisions", "get,list"),
    ("autoscaling", "horizontalpodautoscalers", "list"),
    ("policy", "poddisruptionbudgets", "list"),
    ("metrics.k8s.io", "pods", "get"),
];

fn role(name: &str, without: &str) -> String {
    let rules: Vec<String> = ALL
        .iter()
        .filter(|(_, resource, _)| *resource != without)
        .map(|(group, resource, verbs)| format!("- {{apiGroups: ['{group}'], resources: ['{resource}'], verbs: [{verbs}]}}"))
        .collect();
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules:\n{}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: default}}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}\n\
         subjects: [{{kind: ServiceAccount, name: {name}, namespace: default}}]\n",
        rules.join("\n")
    )
}

/// A kubeconfig with one token.
pub fn kubeconfig(dir: &std::path::Path, token: &str) -> std::path::PathBuf {
    let path = dir.join("kubeconfig");
    let admin = kubectl(&["config", "view", "--raw", "-o", "json"]);
    let mut config: Value = serde_json::from_str(&admin).unwrap();
    config["users"][0]["user"] = serde_json::json!({"token": token});
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

fn failing_pod() -> String {
    crate::harness::pods_of(&crate::harness::expected()["deployment"]).remove(0)
}

#[test]
fn a_missing_permission_costs_its_source_only_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let pod = format!("pod/{}", failing_pod());
    for (resource, source, permission) in DENIED {
        let name = format!("e2e-without-{}", resource.replace('/', "-"));
        create(&role(&name, resource));
        let token = kubectl(&["create", "token", &name, "-n", "default"]);
        let config = kubeconfig(dir.path(), token.trim());
        let bundle = dir.path().join("b.tar.zst");
        let mut c = dualplane();
        c.args(["capture", &pod, "-n", "serving", "--kubeconfig"]).arg(&config).arg("--out").arg(&bundle);
        // The authorizer learns of a new role within a moment.
        let ran = (0..20).map(|_| Ran::of(&mut c)).find(|r| {
            std::thread::sleep(std::time::Duration::from_millis(250));
            r.code == Some(0) && !r.err.contains("get pods is missing")
        });
        let ran = ran.unwrap_or_else(|| Ran::of(&mut c)).ok();
        let manifest = manifest(&bundle);
        let sources = manifest["sources"].as_array().unwrap();
        let state = |n: &str| sources.iter().find(|s| s["name"] == n).map(|s| s["state"].clone());
        let gaps = manifest["gaps"].to_string();
        assert!(gaps.contains(permission), "without {resource}: {gaps}");
        assert!(ran.err.contains(permission), "{}", ran.err);
        assert_ne!(state(source), Some("ok".into()).filter(|_| *source != "policy"), "without {resource}");
        // The others are there.
        for other in ["pod", "events", "node", "logs/vllm (previous)"] {
            if other != *source {
                assert_eq!(state(other), Some("ok".into()), "without {resource}: {other}\n{manifest}");
            }
        }
        let verdict = Ran::of(dualplane().args(["triage", "-o", "json"]).arg(&bundle)).ok().json();
        assert_eq!(verdict["verdict"]["class"], "host_oom_killed", "without {resource}");
        kubectl(&["delete", "clusterrole,clusterrolebinding", &name]);
        kubectl(&["delete", "serviceaccount", &name, "-n", "default"]);
    }
}

#[test]
fn without_the_pod_itself_there_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    create("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: e2e-nothing, namespace: default}\n");
    let token = kubectl(&["create", "token", "e2e-nothing", "-n", "default"]);
    let config = kubeconfig(dir.path(), token.trim());
    let ran = Ran::of(dualplane().args(["triage", "pod/pid1-oom", "-n", "serving", "--kubeconfig"]).arg(&config));
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("get pods") && ran.err.contains("deploy/rbac.yaml"), "{}", ran.err);
    // Impersonation is kubectl's.
    let who = "system:serviceaccount:default:e2e-nothing";
    let ran = Ran::of(dualplane().args(["triage", "pod/pid1-oom", "-n", "serving", "--as", who]));
    assert!(ran.err.contains("get pods") && ran.err.contains(who), "{}", ran.err);
}

#[test]
fn a_refused_token_is_said_to_be_one() {
    let dir = tempfile::tempdir().unwrap();
    // An expired one is refused in the same way: the signature is right and the time is not.
    let config = kubeconfig(dir.path(), "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJleHAiOjE2MDAwMDAwMDB9.c2ln");
    let ran = Ran::of(dualplane().args(["triage", "pod/pid1-oom", "-n", "serving", "--kubeconfig"]).arg(&config));
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("does not accept these credentials") && ran.err.contains("log in"), "{}", ran.err);
    let _ = Command::new("true").status();
}

#[test]
fn exec_plugins_give_the_token() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("plugin.sh");
    let token = kubectl(&["create", "token", "default", "-n", "serving"]);
    std::fs::write(&script, format!("#!/bin/sh\necho '{{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{\"token\":\"{}\"}}}}'\n", token.trim())).unwrap();
    Command::new("chmod").args(["+x"]).arg(&script).status().unwrap();
    let config = kubeconfig(dir.path(), "x");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    value["users"][0]["user"] = serde_json::json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1",
        "command": script.to_string_lossy(), "interactiveMode": "Never"}});
    std::fs::write(&config, value.to_string()).unwrap();
    let ran = Ran::of(dualplane().args(["triage", "pod/pid1-oom", "-n", "serving", "--kubeconfig"]).arg(&config));
    // The token is good, the account may do nothing.
    assert!(ran.err.contains("system:serviceaccount:serving:default"), "{}", ran.err);
}
