//! Settings that reports of labelled incidents compute, carried out on real Deployments and taken back again.
//!
//! Each incident is judged from its own files. Its pod's template becomes a Deployment, as it is or with its command line in
//! another form that people use; the image is one that exists here.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Ran, create, dualplane, kubectl, root, run};

/// How the server is started.
#[derive(Clone, Copy)]
enum Form {
    /// As the incident's pod has it.
    AsItIs,
    /// One container with these fields.
    Of(fn() -> Value),
}

/// Incident, form, and where in the container which words stand after the change.
struct Case {
    incident: &'static str,
    form: Form,
    after: &'static [(&'static str, &'static str)],
}

const VLLM: &str = "docker.io/vllm/vllm-openai:v0.11.0";

const CASES: &[Case] = &[
    Case {
        incident: "vllm-cuda-oom-runtime-d008",
        form: Form::AsItIs,
        after: &[("/args/0", "--gpu-memory-utilization"), ("/args/1", "0.89")],
    },
    // With a sidecar beside it.
    Case { incident: "vllm-cuda-oom-runtime-d020", form: Form::AsItIs, after: &[("/args/1", "0.89")] },
    Case {
        incident: "vllm-kv-cache-capacity-a019",
        form: Form::AsItIs,
        after: &[("/args/0", "--model"), ("/args/2", "--max-model-len"), ("/args/3", "46928")],
    },
    // The flag and the GPUs that it needs.
    Case {
        incident: "vllm-cuda-oom-load-d098",
        form: Form::AsItIs,
        after: &[
            ("/args/0", "--tensor-parallel-size"),
            ("/args/1", "2"),
            ("/resources/limits/nvidia.com~1gpu", "2"),
        ],
    },
    Case {
        incident: "tei-cuda-oom-load",
        form: Form::AsItIs,
        after: &[("/args/0", "--max-batch-tokens"), ("/args/1", "8192")],
    },
    Case { incident: "sglang-hicache-over-limit", form: Form::AsItIs, after: &[] },
    Case {
        incident: "vllm-cuda-oom-runtime-c006",
        form: Form::Of(|| {
            json!({"command": ["/bin/sh", "-c"],
                "args": ["set -e  # start\ncd /tmp && exec vllm serve m --gpu-memory-utilization=\"0.9\" \\\n  --port 8000 2>&1\n"]})
        }),
        after: &[(
            "/args/0",
            "set -e  # start\ncd /tmp && exec vllm serve m --gpu-memory-utilization=\"0.86\" \\\n  --port 8000 2>&1\n",
        )],
    },
    Case {
        incident: "vllm-cuda-oom-runtime-a009",
        form: Form::Of(|| {
            json!({"command": ["vllm", "serve", "m"], "args": ["--gpu-memory-utilization", "$(SHARE)", "--port=1"],
                "env": [{"name": "SHARE", "value": "0.92"}]})
        }),
        after: &[("/args/1", "$(SHARE)"), ("/env/0/value", "0.91")],
    },
    Case {
        incident: "vllm-kv-cache-capacity-c060",
        form: Form::Of(|| {
            json!({"command": ["/bin/sh", "-c", "exec vllm serve m $VLLM_ARGS"],
                "env": [{"name": "VLLM_ARGS", "value": "--port 1  --max-num-seqs 256 --x"}]})
        }),
        after: &[("/env/0/value", "--port 1  --max-num-seqs 169 --x")],
    },
    // The variable comes from another object: the container's own goes before it.
    Case {
        incident: "vllm-fragmentation-c052",
        form: Form::Of(|| {
            json!({"command": ["vllm", "serve", "m"], "envFrom": [{"configMapRef": {"name": "conf", "optional": true}}],
                "env": [{"name": "PYTORCH_CUDA_ALLOC_CONF", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "alloc", "optional": true}}}]})
        }),
        after: &[("/env/0/value", "expandable_segments:True")],
    },
];

/// A pod of the incident's files.
fn pod(folder: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(folder.join("pod.json")).ok()?).ok()
}

/// The image under whose name the victim stands here; what an image carries must stay to be seen.
fn existing(image: &str) -> String {
    let of = |word: &str| image.contains(word);
    if of("vllm-openai") {
        VLLM.into()
    } else if of("text-embeddings-inference") {
        "ghcr.io/huggingface/text-embeddings-inference:1.8".into()
    } else if of("sglang") {
        "docker.io/lmsysorg/sglang:v0.5.8".into()
    } else {
        "registry.local/victim:1".into()
    }
}

/// What of a container decides its start, and nothing that this node lacks.
fn container(of: &Value, with_gpus: bool) -> Value {
    let mut out = json!({"name": of["name"], "image": existing(of["image"].as_str().unwrap_or_default()), "imagePullPolicy": "Never"});
    for field in ["command", "args", "env", "envFrom"] {
        if let Some(value) = of.get(field).filter(|v| !v.is_null()) {
            out[field] = value.clone();
        }
    }
    if out["image"] == "registry.local/victim:1" {
        out["command"] = json!(["victim", "sleep"]);
    }
    if let Some(gpus) = of.pointer("/resources/limits/nvidia.com~1gpu").filter(|_| with_gpus) {
        out["resources"] = json!({"limits": {"nvidia.com/gpu": gpus}});
    }
    // The victim sleeps, whatever its arguments say.
    let env = out.as_object_mut().unwrap().entry("env").or_insert_with(|| json!([]));
    env.as_array_mut().unwrap().push(json!({"name": "VICTIM", "value": "ignore-term then sleep"}));
    out
}

fn deployment(name: &str, namespace: &str, case: &Case, folder: &Path, gpus: bool) -> Value {
    let containers: Vec<Value> = match case.form {
        Form::AsItIs => {
            let pod = pod(folder).unwrap_or_else(|| panic!("{name} has no pod.json"));
            pod["spec"]["containers"].as_array().unwrap().iter().map(|c| container(c, gpus)).collect()
        }
        Form::Of(fields) => {
            let mut one = fields();
            one["name"] = json!("server");
            one["image"] = json!(VLLM);
            vec![container(&one, gpus)]
        }
    };
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": containers}}}})
}

fn live(name: &str, namespace: &str) -> Value {
    serde_json::from_str(&kubectl(&["get", "deploy", name, "-n", namespace, "-o", "json"])).unwrap()
}

/// Number of the first fix that changes a setting, as `apply` counts them.
fn number(report: &Value) -> usize {
    let given = |a: &&Value| a.get("patch").is_some() || a.get("changes").is_some();
    let offers: Vec<&Value> = report["actions"].as_array().unwrap().iter().filter(given).collect();
    let setting = |a: &&Value| a["stage"] == "fix" && a["changes"][0]["kind"] == "setting";
    1 + offers.iter().position(setting).expect("a computed setting")
}

#[test]
fn ten_computed_settings_are_carried_out_and_taken_back() {
    let state = tempfile::tempdir().unwrap();
    for case in CASES {
        let name = case.incident;
        let folder = root().join("testdata/incidents").join(name);
        let report = run(&["triage", &folder.to_string_lossy(), "-o", "json"]);
        let report: Value = serde_json::from_slice(&report.out).unwrap();
        let file = state.path().join("report.json");
        std::fs::write(&file, report.to_string()).unwrap();
        let namespace = report["subject"]["namespace"].as_str().unwrap_or("e2e-patches").to_owned();
        create(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"));
        // Other tests hold the node's two GPUs: a pod that asks for some may wait for them, and none of the others asks.
        let gpus = case.after.iter().any(|(pointer, _)| pointer.contains("gpu"));
        create(&deployment(name, &namespace, case, &folder, gpus).to_string());
        let rolled_out = || {
            if !gpus {
                kubectl(&["rollout", "status", "-n", &namespace, &format!("deploy/{name}"), "--timeout=90s"]);
            }
        };
        rolled_out();
        let before = live(name, &namespace);

        let with = |args: &[&str]| {
            let mut c = dualplane();
            c.args(args).env("XDG_STATE_HOME", state.path());
            Ran::of(&mut c)
        };
        let (file, to, number) =
            (file.to_string_lossy(), format!("deploy/{name}"), number(&report).to_string());
        let apply = ["apply", &file, "--action", &number, "--to", &to, "-n", &namespace, "--yes"];
        with(&apply).ok();
        let after = live(name, &namespace);
        let containers = |d: &Value| d["spec"]["template"]["spec"]["containers"].as_array().unwrap().clone();
        let changed: Vec<usize> = (0..containers(&before).len())
            .filter(|i| containers(&before)[*i] != containers(&after)[*i])
            .collect();
        let [at] = changed[..] else { panic!("{name}: {changed:?} changed") };
        let server = &containers(&after)[at];
        for (pointer, want) in case.after {
            assert_eq!(
                server.pointer(pointer).and_then(Value::as_str),
                Some(*want),
                "{name} {pointer}: {server}"
            );
        }
        // Of all else nothing moved, and the new pod starts with it.
        let mut rest = after.clone();
        rest["spec"]["template"]["spec"]["containers"][at] = containers(&before)[at].clone();
        assert_eq!(rest["spec"], before["spec"], "{name}");
        rolled_out();

        let again = with(&apply).ok();
        assert!(again.text().contains("Nothing to change"), "{name}: {}", again.text());
        with(&["rollback", "--last", "--yes"]).ok();
        assert_eq!(live(name, &namespace)["spec"], before["spec"], "{name}");
        kubectl(&["delete", "-n", &namespace, &to, "--wait=true"]);
    }
    assert_eq!(CASES.len(), 10);
}
