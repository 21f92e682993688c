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

#[test]
fn several_cards_beside_a_model_and_flags_are_all_used_unless_the_flags_say_how_many() {
    let tp = |flags: &[&str]| {
        let o = run(&[&["plan", "-o", "json", "llama3.1:8b", "--gpu", "4xT4", "--"], flags].concat());
        serde_json::from_slice::<Value>(&o.stdout).unwrap()["gpus"].as_u64()
    };
    for flags in [&["--max-model-len", "16384"][..], &["--dtype=half"], &["--served-model-name", "data"]] {
        assert_eq!(tp(flags), Some(4), "{flags:?}");
    }
    let said = [&["-tp", "1"][..], &["--tensor_parallel_size=1"], &["-pp=1"], &["--data-parallel-size", "1"]];
    for flags in said {
        assert_eq!(tp(flags), Some(1), "{flags:?}");
    }
}

#[test]
fn where_nothing_that_is_tried_starts_it_is_said() {
    let v = plan(&["--gpu", "T4", "--", "vllm serve meta-llama/Llama-3.1-405B-Instruct"]);
    let edges = v["edges"].as_array().unwrap();
    assert_eq!((v["verdict"].as_str(), v["ways"].as_array().map(Vec::len)), (Some("refused"), Some(0)));
    assert!(edges.iter().any(|e| e["name"] == "nothing_near"), "{edges:?}");
    // And what it says to do lists cards.
    let o = run(&["plan", "meta-llama/Llama-3.1-405B-Instruct"]);
    assert!(code(&o) == 0 && stdout(&o).contains("H200"), "{}", stdout(&o));
}

/// Each way that is printed starts, with the flags that it names behind the command.
#[test]
fn what_would_start_starts() {
    let launches = [
        ("A10G", "vllm serve meta-llama/Llama-3.1-8B-Instruct", 2),
        ("L4", "vllm serve Qwen/Qwen3-14B", 1),
        // Two hold it with a shorter context, four as it is with another share: no number of them as asked alone.
        ("T4", "vllm serve meta-llama/Llama-3.1-8B-Instruct", 2),
        ("A100-80GB", "vllm serve Qwen/Qwen2.5-72B-Instruct", 1),
        ("H100", "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-70B-Instruct", 1),
    ];
    for (card, launch, most) in launches {
        let v = plan(&["--gpu", card, "--", launch]);
        assert_ne!(v["verdict"], "fits", "{launch}");
        let ways = v["ways"].as_array().unwrap();
        assert!(!ways.is_empty() && ways.len() <= 3 && ways.len() >= most, "{launch}: {ways:?}");
        for way in ways {
            let flags: Vec<&str> =
                way["flags"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
            let again = plan(&["--gpu", card, "--", &format!("{launch} {}", flags.join(" "))]);
            assert_eq!(again["verdict"], "fits", "{launch} {flags:?}");
            assert_eq!(again["ways"].as_array().map(Vec::len), Some(0));
        }
    }
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: server\n    \
         image: vllm/vllm-openai:v0.33.0\n    args: [--model, Qwen/Qwen3-8B]\n    \
         resources: {limits: {nvidia.com/gpu: \"1\", memory: 2Gi}}\n";
    let d = dir(&[("deploy.yaml", pod.as_bytes())]);
    let v = plan(&["--gpu", "H100", "--manifest", d.path().to_str().unwrap()]);
    let text = v["ways"][0]["text"].as_str().unwrap();
    assert_eq!(
        (v["verdict"].as_str(), v["ways"][0]["name"].as_str()),
        (Some("refused"), Some("memory_limit"))
    );
    let limit = text.split(' ').nth(1).unwrap();
    let d = dir(&[("deploy.yaml", pod.replace("memory: 2Gi", &format!("memory: {limit}")).as_bytes())]);
    let v = plan(&["--gpu", "H100", "--manifest", d.path().to_str().unwrap()]);
    assert_eq!(v["verdict"], "fits", "{text}");
}

#[test]
fn a_pod_that_no_machine_holds_is_not_printed() {
    let launch =
        ["plan", "--gpu", "H100", "--emit", "manifest", "--", "vllm", "serve", "Qwen/Qwen3-235B-A22B", "-tp"];
    let o = run(&[&launch[..], &["16"]].concat());
    assert_eq!(code(&o), 6, "{}", stderr(&o));
    assert!(stderr(&o).contains("16 GPUs") && o.stdout.is_empty(), "{}", stderr(&o));
    assert_eq!(code(&run(&[&launch[..], &["8"]].concat())), 0);
}

#[test]
fn a_name_that_was_broken_off_is_answered_with_those_that_it_begins() {
    let o = run(&["plan", "--gpu", "H100", "--model", "qwen3-235b"]);
    assert!(stderr(&o).contains("Qwen/Qwen3-235B-A22B"), "{}", stderr(&o));
}
