//! Findings as SARIF 2.1.0, which code hosts show beside the lines.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Report;
use crate::finding::{Finding, Severity};
use crate::rule::Rules;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The report as a value; `version` is the program's.
#[must_use]
pub fn sarif(r: &Report, version: &str) -> Value {
    let used: BTreeSet<&str> = r.findings.iter().map(|f| f.rule.as_str()).collect();
    let rules: Vec<Value> = Rules::embedded()
        .list()
        .iter()
        .filter(|rule| used.contains(rule.id.as_str()))
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.why},
                "help": {"text": format!("{} Source: {}", rule.fix, rule.source)},
                "defaultConfiguration": {"level": rule.severity},
            })
        })
        .collect();
    let unread: Vec<Value> = r
        .unread
        .iter()
        .map(|u| {
            json!({
                "level": "warning",
                "message": {"text": format!("document {} was not checked: {}", u.document, u.why)},
                "locations": [place(&u.file, u.line)],
            })
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "dualplane lint", "version": version, "rules": rules}},
            "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": unread}],
            "results": r.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn place(file: &str, line: u64) -> Value {
    json!({"physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": {"startLine": line.max(1)}}})
}

/// A path as a reference: what a URI may not hold is escaped.
fn uri(file: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-._~/+@".contains(&b);
    file.bytes().map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn result(f: &Finding) -> Value {
    let level = match f.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    json!({
        "ruleId": f.rule,
        "level": level,
        "message": {"text": format!("{}: {}. Fix: {}.", f.subject(), f.message, f.fix)},
        "locations": [place(&f.source.file, f.at)],
        "partialFingerprints": {"dualplane/v1": f.fingerprint()},
    })
}
