//! `dualplane plan --shape`: the requests of a file instead of a named profile.

use serde_json::{Value, json};

use crate::harness::{dir, root, run};

#[test]
fn a_shape_of_requests_is_read_and_checked() {
    let text = "schema = \"dualplane.shape/v1\"\nname = \"own\"\nconcurrency = 40\nrequests = [\n  { input = 900, output = 200, weight = 9 },\n  { input = 60000, output = 900, weight = 1 },\n]\n";
    let wrong = text.replace("concurrency = 40", "concurrency = 0");
    let folder = dir(&[("own.toml", text.as_bytes()), ("wrong.toml", wrong.as_bytes())]);
    let plan = |file: &str| {
        let file = folder.path().join(file);
        let shape = file.to_str().unwrap().to_owned();
        run(&["plan", "--gpu", "L4", "--model", "qwen3-8b", "--shape", &shape, "-o", "json"])
    };
    let o = plan("own.toml");
    let json: Value = serde_json::from_slice(&o.stdout).unwrap();
    let demand = &json["traffic"]["demand"];
    // One request in ten is longer than the context of 40,960 tokens.
    assert_eq!(demand["too_long_per_mille"], 100, "{demand}");
    assert_eq!(
        (json["traffic"]["stated"]["input_p50"].as_u64(), json["traffic"]["stated"]["profile"].as_str()),
        (Some(900), Some("own"))
    );
    let o = plan("wrong.toml");
    assert!(!o.status.success() && String::from_utf8_lossy(&o.stderr).contains("concurrency is 0"));
}

#[test]
fn the_named_shapes_follow_the_published_schema() {
    let schema = std::fs::read_to_string(root().join("docs/shape.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let files = std::fs::read_dir(root().join("knowledge/shapes")).unwrap();
    let mut seen = 0;
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let value: Value = toml::from_str(&text).unwrap();
        assert!(validator.is_valid(&value), "{text}");
        seen += 1;
    }
    assert!(seen >= 5);
    assert!(!validator.is_valid(&json!({"schema": "dualplane.shape/v1", "concurrency": 1})));
}
