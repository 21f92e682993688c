//! Every JSON report follows the published schema.

use serde_json::{Value, json};

use crate::harness::{incidents_dir, root, run, shared_incidents};

/// Holds a value against `docs/NAME.schema.json`, which must be able to fail.
pub(crate) fn follows(value: &Value, name: &str) {
    let text = std::fs::read_to_string(root().join(format!("docs/{name}.schema.json"))).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|e| format!("{e} at {}", e.instance_path)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut other = value.clone();
    other.as_object_mut().unwrap().insert("unheard_of".into(), json!(1));
    assert!(!validator.is_valid(&other));
}

#[test]
fn all_reports_follow_the_published_schema() {
    let text = std::fs::read_to_string(root().join("docs/verdict.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut seen = 0;
    for dir in std::iter::once(incidents_dir()).chain(shared_incidents()) {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let o = run(&["triage", path.to_str().unwrap(), "-o", "json"]);
            if o.status.code() != Some(0) {
                continue;
            }
            let v: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&v).map(|e| format!("{} at {}", e, e.instance_path)).collect();
            assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
            seen += 1;
        }
        // The list form.
        let o = run(&["triage", dir.to_str().unwrap(), "-o", "json"]);
        let v: serde_json::Value = serde_json::from_slice(&o.stdout).unwrap();
        assert!(validator.is_valid(&v), "{} as a list", dir.display());
    }
    assert!(seen >= 30, "only {seen} reports were checked");
    // The schema can fail.
    assert!(!validator.is_valid(&serde_json::json!({"schema": "dualplane.verdict/v2"})));
}
