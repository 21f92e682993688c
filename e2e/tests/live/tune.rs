//! `tune --to`: a search moves a real Deployment, waits for its pods, and leaves it with what was best.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::{Namespace, Ran, binary, create, dualplane, kubectl, root};

const NAMESPACE: &str = "tuned";

/// The small server of `e2e/tune` under the name that vLLM's program has, in a pod with the machine's root.
fn deployment(folder: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: llm, namespace: {NAMESPACE}}}\nspec:\n  replicas: 1\n  \
         strategy: {{type: Recreate}}\n  selector: {{matchLabels: {{app: llm}}}}\n  template:\n    \
         metadata: {{labels: {{app: llm}}}}\n    spec:\n      terminationGracePeriodSeconds: 0\n      \
         containers:\n      - name: server\n        image: registry.local/busybox:1\n        imagePullPolicy: Never\n        \
         command: [chroot, /host, /bin/sh, -c]\n        \
         args: [\"exec {folder}/vllm serve m --host 0.0.0.0 --port 8000 --max-num-seqs 2\"]\n        \
         env: [{{name: PATH, value: \"/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin\"}}]\n        \
         readinessProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 1}}\n        \
         volumeMounts: [{{name: host, mountPath: /host}}]\n      \
         volumes: [{{name: host, hostPath: {{path: /}}}}]\n"
    )
}

/// What a pod's server was started with: of the one that runs, not of the template.
fn serves_with() -> String {
    kubectl(&["get", "pods", "-n", NAMESPACE, "-o", "jsonpath={.items[*].spec.containers[0].args[0]}"])
}

#[test]
fn a_search_moves_a_deployment_and_leaves_the_best() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("vllm");
    std::fs::copy(root().join("e2e/tune/server.py"), &program).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let _namespace = Namespace::fresh(NAMESPACE);
    create(&deployment(folder.path().to_str().unwrap()));
    let log = folder.path().join("tune.json");
    let shape = folder.path().join("shape.toml");
    let short = "schema = \"dualplane.shape/v1\"\nname = \"short\"\nconcurrency = 32\nrequests = [{ input = 16, output = 16 }]\n";
    std::fs::write(&shape, short).unwrap();
    // There is no kube-proxy here: the pod is asked by its own address.
    let measure = format!(
        "ip=$(kubectl get pods -n {NAMESPACE} -l app=llm -o jsonpath='{{.items[0].status.podIP}}') && exec {} measure \
         --wait 60s --target http://$ip:8000 --api completions --plain --model m --shape {} --concurrency 32 --duration 3s \
         --warmup 1s --slo e2e=20s -o json",
        binary().display(),
        shape.display()
    );
    // Records of its own: other tests change the cluster from this machine as well.
    let run = |args: &[&str]| {
        Ran::of(dualplane().env("XDG_STATE_HOME", folder.path().join("state")).args(args)).ok()
    };
    let ran = run(&[
        "tune",
        "--run",
        "--to",
        "deploy/llm",
        "-n",
        NAMESPACE,
        "--measure",
        &measure,
        "--log",
        log.to_str().unwrap(),
        "--steps",
        "2",
        "--yes",
        "-o",
        "json",
    ]);
    let v: Value = ran.json();
    let steps = v["steps"].as_array().unwrap();
    let best = steps.iter().rfind(|s| s["decision"] == "keep").unwrap();
    let words: Vec<&str> = best["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let goodput = |s: &Value| s["numbers"]["goodput"].as_f64().unwrap();
    assert!(steps.len() >= 2 && goodput(best) > 3.0 * goodput(&steps[0]), "{v:#}\n{}", ran.err);
    assert!(serves_with().ends_with(&words[words.len() - 2..].join(" ")), "{}: {v:#}", serves_with());
    // Each move and each way back made pods anew: the Deployment counts them.
    let generation =
        kubectl(&["get", "deploy/llm", "-n", NAMESPACE, "-o", "jsonpath={.metadata.generation}"]);
    let back = steps.iter().filter(|s| s["decision"] == "revert").count();
    assert_eq!(generation.parse::<usize>().unwrap(), steps.len() + back, "{v:#}");
    run(&["rollback", "--last", "--yes"]);
    let template = "jsonpath={.spec.template.spec.containers[0].args[0]}";
    let template = kubectl(&["get", "deploy/llm", "-n", NAMESPACE, "-o", template]);
    assert!(!template.ends_with(&words[words.len() - 2..].join(" ")), "{template}");
}
