//! Findings as `dualplane.lint/v1`. `docs/lint.schema.json` is its schema.

use serde_json::{Value, json};

use super::Report;
use crate::finding::Severity;

/// The report as a value.
#[must_use]
pub fn json(r: &Report) -> Value {
    json!({
        "schema": "dualplane.lint/v1",
        "summary": {
            "live": r.live,
            "files": r.files,
            "objects": r.objects,
            "errors": r.count(Severity::Error),
            "warnings": r.count(Severity::Warning),
            "notes": r.count(Severity::Note),
            "suppressed": r.suppressed,
            "not_listed": r.more,
            "not_checked": r.more_unread + r.unread.len() as u64,
            "other_kinds": r.other_kinds,
            "other_documents": r.other_documents,
        },
        "findings": r.findings.iter().map(|f| json!({
            "rule": f.rule,
            "severity": f.severity,
            "file": f.source.file,
            "document": f.source.document,
            "line": f.at,
            "kind": f.kind,
            "namespace": f.namespace,
            "name": f.name,
            "part": f.part,
            "pointer": f.pointer,
            "message": f.message,
            "fix": f.fix,
            "edits": f.edits,
            "fingerprint": f.fingerprint(),
        })).collect::<Vec<_>>(),
        "not_checked": r.unread,
        "remarks": r.remarks(),
    })
}
