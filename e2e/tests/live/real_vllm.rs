//! A real vLLM dies of a request length that its KV cache cannot hold; the report's patch makes it serve, and is taken back.
//!
//! The pod is that of `model_server.rs` as a Deployment, which `apply` can change.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Ran, create, dualplane, kubectl, run, succeeds};
use crate::model_server::engine;

const NAMESPACE: &str = "e2e-vllm";

/// Two minutes on a busy machine of two cores.
const START: Duration = Duration::from_secs(420);

/// A pool of 1 GiB, which holds half of the longest request that is asked for. The machine's own table of hosts knows the
/// pod's name: without it each look-up waits for a name server that is not there. The pod has the machine's process ids as
/// well, because it sees the machine's `/proc`: a worker opens `/proc/<its pid>/status`, and with ids of its own that file is
/// of another process, or missing.
fn deployment(folder: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: llm, namespace: {NAMESPACE}}}\nspec:\n  replicas: 1\n  \
         selector: {{matchLabels: {{app: llm}}}}\n  strategy: {{type: Recreate}}\n  template:\n    \
         metadata: {{labels: {{app: llm}}}}\n    spec:\n      hostPID: true\n      terminationGracePeriodSeconds: 5\n      hostname: localhost\n      containers:\n      \
         - name: vllm\n        image: docker.io/vllm/vllm-openai:v0.11.0\n        imagePullPolicy: Never\n        \
         command: [chroot, /host, /bin/bash, -c]\n        args:\n        - |\n          \
         # long prompts\n          cd {folder} && exec venv/bin/python venv/bin/vllm serve ./tiny --port 8000 \\\n            \
         --max-model-len \"1048576\" --enforce-eager 2>&1\n        \
         env:\n        - {{name: VLLM_CPU_KVCACHE_SPACE, value: \"1\"}}\n        - {{name: VLLM_ALLOW_LONG_MAX_MODEL_LEN, value: \"1\"}}\n        \
         - {{name: VLLM_HOST_IP, value: 127.0.0.1}}\n        - {{name: GLOO_SOCKET_IFNAME, value: lo}}\n        - {{name: HF_HUB_OFFLINE, value: \"1\"}}\n        \
         - {{name: PATH, value: \"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"}}\n        \
         readinessProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 3}}\n        \
         resources: {{limits: {{memory: 8Gi}}, requests: {{memory: 1Gi}}}}\n        \
         volumeMounts: [{{name: host, mountPath: /host}}]\n      \
         volumes: [{{name: host, hostPath: {{path: /}}}}]\n"
    )
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let from = Instant::now();
    while !done() {
        if from.elapsed() > START {
            let log = Ran::of(std::process::Command::new("kubectl").args([
                "logs",
                "-n",
                NAMESPACE,
                "deploy/llm",
                "--tail=20",
            ]));
            panic!("{what}: not within {START:?}\n{}{}", log.text(), log.err);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn spec() -> Value {
    let text = kubectl(&["get", "deploy", "llm", "-n", NAMESPACE, "-o", "json"]);
    serde_json::from_str::<Value>(&text).unwrap()["spec"].clone()
}

fn died() -> bool {
    let path = "jsonpath={.items[*].status.containerStatuses[*].lastState.terminated.exitCode}";
    !kubectl(&["get", "pods", "-n", NAMESPACE, "-o", path]).trim().is_empty()
}

/// What the dead engine wrote, for whoever reads a failed run of a machine that is gone.
fn last_words() -> String {
    let all = ["logs", "-n", NAMESPACE, "deploy/llm", "--previous", "--tail=200"];
    Ran::of(std::process::Command::new("kubectl").args(all)).text()
}

#[test]
fn a_real_server_that_refused_to_start_serves_after_its_patch() {
    let Some(folder) = engine() else { return };
    create(&deployment(&folder.to_string_lossy()));
    wait("vLLM refuses to start", died);

    let state = tempfile::tempdir().unwrap();
    let with = |args: &[&str]| {
        let mut c = dualplane();
        c.args(args).env("XDG_STATE_HOME", state.path());
        Ran::of(&mut c)
    };
    let report = run(&["triage", "deploy/llm", "-n", NAMESPACE, "-o", "json"]);
    let file = state.path().join("report.json");
    std::fs::write(&file, &report.out).unwrap();
    let report = report.json();
    assert_eq!(report["verdict"]["class"], "kv_cache_capacity", "{}\n{report}", last_words());
    let actions = report["actions"].as_array().unwrap();
    let fix = actions.iter().find(|a| a.get("changes").is_some()).unwrap();
    let change = &fix["changes"][0];
    assert_eq!(
        (&change["names"][0], &change["was"]),
        (&"--max-model-len".into(), &"1048576".into()),
        "{fix}"
    );
    let length = change["value"].as_str().unwrap();

    let before = spec();
    let script =
        |spec: &Value| spec["template"]["spec"]["containers"][0]["args"][0].as_str().unwrap().to_owned();
    with(&["apply", &file.to_string_lossy(), "--action", "1", "--yes"]).ok();
    assert_eq!(script(&spec()), script(&before).replace("1048576", length));
    kubectl(&[
        "rollout",
        "status",
        "deploy/llm",
        "-n",
        NAMESPACE,
        &format!("--timeout={}s", START.as_secs()),
    ]);

    // It serves: a request is answered.
    let models = ask("GET /v1/models", "");
    assert_eq!(models["data"][0]["max_model_len"].to_string(), length);
    let answer = ask(
        "POST /v1/completions",
        r#"{"model": "./tiny", "prompt": "one two", "max_tokens": 4, "ignore_eos": true}"#,
    );
    assert_eq!(answer["usage"]["completion_tokens"], 4, "{answer}");

    with(&["rollback", "--last", "--yes"]).ok();
    assert_eq!(spec(), before);
    assert!(succeeds(&["delete", "namespace", NAMESPACE, "--wait=false"]));
}

/// What the server answers to a request.
fn ask(request: &str, body: &str) -> Value {
    let path = "jsonpath={.items[0].status.podIP}";
    let address = kubectl(&["get", "pods", "-n", NAMESPACE, "-l", "app=llm", "-o", path]);
    let mut stream = TcpStream::connect((address.as_str(), 8000)).unwrap();
    write!(
        stream,
        "{request} HTTP/1.0\r\nHost: llm\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
}
