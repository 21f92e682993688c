//! `map`: its arguments, a process of this machine, and its schema.

use dualplane_report::map::{Asked, Exporter, Input, assemble};
use serde_json::{Value, json};

use crate::harness::{code, root, run, stderr, stdout};

fn validator() -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join("docs/map.schema.json")).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

fn valid(validator: &jsonschema::Validator, map: &str) {
    let v: Value = serde_json::from_str(map).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&v).map(|e| format!("{e} at {}", e.instance_path)).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{map}");
}

#[test]
fn a_process_is_mapped_without_a_cluster() {
    let pid = std::process::id().to_string();
    let o = run(&["map", "--pid", &pid, "-o", "json"]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    valid(&validator(), &stdout(&o));
    let v: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(v["process"]["pid"].to_string(), pid);
    assert!(!v["process"]["cgroup"].as_str().unwrap().is_empty());
    // No kubeconfig here, or no pod: either way it says what is missing.
    assert!(v["missing"][0]["what"].as_str().unwrap().contains("pod of process"));
    let text = stdout(&run(&["map", "--pid", &pid]));
    assert!(text.starts_with(&format!("process {pid}")) && text.contains("└─ "), "{text}");
}

#[test]
fn the_wrong_questions() {
    for (args, want) in [
        (&["map"][..], 2),
        (&["map", "--pid", "x"], 2),
        (&["map", "--pid", "1", "--node", "n"], 2),
        (&["map", "pod/a", "--gpu", "GPU-1"], 2),
        (&["map", "some/file.log"], 2),
        (&["map", "--pid", "4194999"], 3),
        (&["map", "pod/a", "--kubeconfig", "/nowhere"], 3),
        (&["map", "--gpu", "GPU-1", "--kubeconfig", "/nowhere"], 3),
    ] {
        let o = run(args);
        assert_eq!(code(&o), want, "{args:?}: {}", stderr(&o));
        assert!(o.stdout.is_empty(), "{args:?}");
    }
}

/// A map in which everything stands that the schema names, with hostile names.
#[test]
fn maps_follow_the_published_schema() {
    let uuid = "GPU-aaaaaaaa-0000-4000-8000-000000000001";
    let pod = json!({
        "metadata": {"namespace": "s", "name": "p\u{1b}[31m", "uid": "u",
            "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": true}]},
        "spec": {"nodeName": "n", "containers": [
            {"name": "c", "image": "vllm/vllm-openai:v0.11.0", "command": ["vllm", "serve", "a/\u{202e}b"],
             "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
             "resources": {"limits": {"nvidia.com/gpu": 1}}},
            {"name": "d", "resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}},
            "allocatedResourcesStatus": [{"name": "nvidia.com/gpu",
                "resources": [{"resourceID": format!("{uuid}::1"), "health": "Healthy"}]}]}]}});
    let (samples, _) = dualplane_core::evidence::metrics::parse(
        &format!(
            "DCGM_FI_DEV_FB_USED{{UUID=\"{uuid}\",pod=\"q\",namespace=\"s\",container=\"c\",modelName=\"NVIDIA L4\"}} 5"
        ),
        "dcgm",
    );
    let input = Input {
        pods: vec![pod],
        nodes: vec![json!({"metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-L40S"}}})],
        exporters: vec![Exporter { node: "n".into(), samples }],
        ..Input::default()
    };
    let validator = validator();
    for asked in [Asked::Pods("pod/p".into()), Asked::Node("n".into()), Asked::Gpu(uuid.into())] {
        let map = assemble(&input, &asked).unwrap();
        let text = dualplane_report::map::report::json(&map).unwrap();
        valid(&validator, &text);
        assert!(!text.contains('\u{202e}') && !text.chars().any(|c| c.is_control() && c != '\n'));
        let tree = dualplane_report::map::report::text(&map, dualplane_base::style::Style::default(), true);
        assert!(!tree.chars().any(|c| c.is_control() && c != '\n') && !tree.contains('\u{202e}'), "{tree}");
        assert!(!map.contradictions.is_empty() || asked != Asked::Pods("pod/p".into()));
    }
    assert!(!validator.is_valid(&json!({"schema": "dualplane.map/v1"})));
}
