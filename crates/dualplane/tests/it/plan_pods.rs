//! `dualplane plan`: pods, ranks and files that do or do not go together.

use serde_json::Value;

use crate::harness::{code, dir, run, stderr, stdout};

fn plan(args: &[&str]) -> Value {
    let o = run(&[&["plan", "-o", "json"][..], args].concat());
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    serde_json::from_slice(&o.stdout).unwrap()
}

#[test]
fn more_ranks_than_gpus_of_a_pod_need_something_that_joins_pods() {
    let alone = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: server\n    \
         image: vllm/vllm-openai:v0.11.2\n    args: [--model, Qwen/Qwen3-8B, -tp, \"4\"]\n    \
         resources: {limits: {nvidia.com/gpu: \"2\"}}\n";
    let group = "    env: [{name: LEADER, value: $(LWS_LEADER_ADDRESS)}]\n    resources:";
    let joined = alone.replace("    resources:", group);
    for (text, want) in [(alone, 2), (joined.as_str(), 0)] {
        let d = dir(&[("deploy.yaml", text.as_bytes())]);
        let o = run(&["plan", "--gpu", "A100-80GB", "--manifest", d.path().to_str().unwrap()]);
        assert_eq!(code(&o), want, "{text}: {}", stderr(&o));
    }
}

#[test]
fn a_gguf_is_served_by_what_reads_it() {
    let v = plan(&["--gpu", "L4", "--model", "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q5_K_M"]);
    assert_eq!(v["engine"]["name"], "llama-cpp");
    let gib = v["gpu"]["weights_bytes"]["expected"].as_f64().unwrap() / f64::from(1 << 30);
    assert!((4.8..5.3).contains(&gib), "{gib}");
    let v = plan(&["--gpu", "L4", "--", "ollama", "run", "llama3.1:8b"]);
    assert!(v["unknown"].to_string().contains("Q4_K_M is taken"), "{}", v["unknown"]);
    let o = run(&["plan", "--gpu", "L4", "--", "vllm", "serve", "unsloth/Qwen3-8B-GGUF:Q4_K_M"]);
    assert_eq!(code(&o), 6, "weights of 16 bits would be another model's");
}

#[test]
fn a_group_of_pods_reads_back_as_what_it_was_made_from() {
    let launch = "vllm serve meta-llama/Llama-3.1-405B-Instruct --nnodes 2 -tp 8 -pp 2 --max-model-len 32768";
    let o = run(&["plan", "--emit", "manifest", "--gpu", "H100", "--", launch]);
    let again = dir(&[("group.yaml", stdout(&o).as_bytes())]);
    let v = plan(&["--manifest", again.path().join("group.yaml").to_str().unwrap()]);
    assert_eq!(v["verdict"], "fits", "{}", stdout(&o));
    assert_eq!((&v["pods"]["count"], &v["pods"]["gpus_each"]), (&2.into(), &8.into()));
    let o = run(&["plan", "--emit", "statefulset", "--gpu", "H100", "--", launch]);
    assert_eq!(code(&o), 6, "{}", stdout(&o));
}
