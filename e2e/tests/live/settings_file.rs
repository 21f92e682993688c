//! Settings that stand in a ConfigMap, changed there on a real Deployment and taken back: the pods are made anew and read
//! the file each time.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Ran, create, dualplane, kubectl};

const NAMESPACE: &str = "e2e-settings";

/// A server, its settings, and what stands where after the change.
struct Case {
    name: &'static str,
    engine: &'static str,
    image: &'static str,
    command: &'static [&'static str],
    setting: &'static str,
    was: &'static str,
    value: &'static str,
    /// The text of the file after the change; none where the file stays.
    file: Option<&'static str>,
    /// The container's own variable after the change.
    variable: Option<&'static str>,
}

const FILE: &str = "# of team a\nmodel: m\nmax-model-len: 32768   # the longest request\nkv_cache_config:\n  free_gpu_memory_fraction: 0.9\n";
const VLLM: &str = "docker.io/vllm/vllm-openai:v0.11.0";

const CASES: &[Case] = &[
    Case {
        name: "file",
        engine: "vllm",
        image: VLLM,
        command: &["vllm", "serve", "--config", "/etc/llm/serve.yaml"],
        setting: "--max-model-len",
        was: "32768",
        value: "16384",
        file: Some(
            "# of team a\nmodel: m\nmax-model-len: 16384   # the longest request\nkv_cache_config:\n  free_gpu_memory_fraction: 0.9\n",
        ),
        variable: None,
    },
    Case {
        name: "overriding",
        engine: "tensorrt_llm",
        image: "registry.local/victim:1",
        // The program that exists in this image; what it is given are the words of the other.
        command: &["victim", "trtllm-serve", "serve", "m", "--extra_llm_api_options", "/etc/llm/serve.yaml"],
        setting: "--max_seq_len",
        was: "8192",
        value: "4096",
        file: Some(
            "# of team a\nmodel: m\nmax-model-len: 32768   # the longest request\nkv_cache_config:\n  free_gpu_memory_fraction: 0.9\nmax_seq_len: 4096\n",
        ),
        variable: None,
    },
    Case {
        name: "variable",
        engine: "vllm",
        image: VLLM,
        command: &["/bin/sh", "-c", "exec vllm serve m $VLLM_ARGS"],
        setting: "--max-num-seqs",
        was: "256",
        value: "64",
        file: None,
        variable: Some("--port 1 --max-num-seqs 64"),
    },
];

fn objects(case: &Case) -> Value {
    let map = format!("{}-conf", case.name);
    let container = json!({"name": "server", "image": case.image, "imagePullPolicy": "Never", "command": case.command,
        "env": [{"name": "VICTIM", "value": "ignore-term then sleep"},
            {"name": "VLLM_ARGS", "valueFrom": {"configMapKeyRef": {"name": map, "key": "args"}}}],
        "volumeMounts": [{"name": "conf", "mountPath": "/etc/llm"}]});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": map, "namespace": NAMESPACE},
            "data": {"serve.yaml": FILE, "args": "--port 1 --max-num-seqs 256"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": case.name, "namespace": NAMESPACE},
            "spec": {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": {"app": case.name}}, "template": {
                "metadata": {"labels": {"app": case.name}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container],
                    "volumes": [{"name": "conf", "configMap": {"name": map}}]}}}}]})
}

fn get(kind: &str, name: &str) -> Value {
    serde_json::from_str(&kubectl(&["get", kind, name, "-n", NAMESPACE, "-o", "json"])).unwrap()
}

fn rolled_out(name: &str) -> String {
    kubectl(&["rollout", "status", "-n", NAMESPACE, &format!("deploy/{name}"), "--timeout=90s"]);
    kubectl(&[
        "get",
        "pods",
        "-n",
        NAMESPACE,
        "-l",
        &format!("app={name}"),
        "-o",
        "jsonpath={.items[*].metadata.uid}",
    ])
}

fn report(case: &Case, folder: &Path) -> String {
    let report = json!({"schema": "dualplane.verdict/v2", "subject": {"namespace": NAMESPACE, "container": "server"}, "actions": [
        {"stage": "fix", "title": format!("Set {} {}", case.setting, case.value), "changes": [{"kind": "setting",
            "engine": case.engine, "names": [case.setting], "value": case.value, "was": case.was, "shown": false}]}]});
    let file = folder.join(format!("{}.json", case.name));
    std::fs::write(&file, report.to_string()).unwrap();
    file.to_string_lossy().into_owned()
}

#[test]
fn settings_of_config_maps_are_carried_out_and_taken_back() {
    let state = tempfile::tempdir().unwrap();
    let with = |args: &[&str]| {
        let mut c = dualplane();
        c.args(args).env("XDG_STATE_HOME", state.path());
        Ran::of(&mut c)
    };
    create(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"));
    for case in CASES {
        create(&objects(case).to_string());
        let (name, map) = (case.name, format!("{}-conf", case.name));
        let first = rolled_out(name);
        let before = (get("deploy", name), get("configmap", &map));
        let (file, to) = (report(case, state.path()), format!("deploy/{name}"));
        let apply = ["apply", &file, "--to", &to, "-n", NAMESPACE, "--yes"];
        with(&apply).ok();

        let second = rolled_out(name);
        assert_ne!(first, second, "{name}: the pod is a new one");
        assert_eq!(get("configmap", &map)["data"]["serve.yaml"], case.file.unwrap_or(FILE), "{name}");
        let container = get("deploy", name)["spec"]["template"]["spec"]["containers"][0].clone();
        let variable =
            container["env"].as_array().unwrap().iter().find(|v| v["name"] == "VLLM_ARGS").unwrap();
        assert_eq!(variable["value"].as_str(), case.variable, "{name}");
        assert_eq!(container["command"], json!(case.command), "{name}");
        assert!(with(&apply).text().contains("already"), "{name}: it is so");

        with(&["rollback", "--last", "--yes"]).ok();
        let third = rolled_out(name);
        assert_ne!(second, third, "{name}: the pod is a new one");
        let now = (get("deploy", name), get("configmap", &map));
        assert_eq!(now.0["spec"], before.0["spec"], "{name}");
        assert_eq!(now.1["data"], before.1["data"], "{name}");
    }

    // One that cannot be changed is said, and nothing is.
    let map = "file-conf";
    kubectl(&["patch", "configmap", map, "-n", NAMESPACE, "-p", "{\"immutable\": true}"]);
    let before = get("deploy", "file");
    let file = report(&CASES[0], state.path());
    let refused = with(&["apply", &file, "--to", "deploy/file", "-n", NAMESPACE, "--yes"]);
    assert_eq!(refused.code, Some(7), "{}", refused.err);
    assert!(refused.err.contains("immutable"), "{}", refused.err);
    assert_eq!(get("deploy", "file")["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
}
