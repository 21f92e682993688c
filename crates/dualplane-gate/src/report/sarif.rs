//! The answer as SARIF 2.1.0: a result for each check that does not pass.

use serde_json::{Value, json};

use crate::gate::{Gate, Outcome};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The answer as a value; `version` is the program's.
#[must_use]
pub fn sarif(g: &Gate, version: &str) -> Value {
    let bad = || g.checks.iter().filter(|c| matches!(c.outcome, Outcome::Fail | Outcome::NotShown));
    let rules: Vec<Value> =
        bad().map(|c| json!({"id": c.id, "shortDescription": {"text": c.asked}})).collect();
    let results: Vec<Value> = bad()
        .map(|c| {
            let mut result = json!({
                "ruleId": c.id,
                "level": if c.outcome == Outcome::Fail { "error" } else { "warning" },
                "message": {"text": format!("{}. Asked: {}.", c.found, c.asked)},
                "partialFingerprints": {"dualplane/v1": c.id},
            });
            if let (Some(file), Some(object)) = (&c.file, result.as_object_mut()) {
                let place = json!([{"physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": {"startLine": 1}}}]);
                object.insert("locations".to_owned(), place);
            }
            result
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "dualplane gate", "version": version, "rules": rules}},
            "results": results,
        }],
    })
}

/// A path as a reference: what a URI may not hold is escaped.
fn uri(file: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-._~/+@".contains(&b);
    file.bytes().map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
