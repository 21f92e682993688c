//! Findings as GitHub's workflow commands and as GitLab's report of code quality.

use serde_json::{Value, json};

use super::Report;
use crate::finding::Severity;

/// GitHub's commands, a line each.
#[must_use]
pub fn github(r: &Report) -> String {
    let mut out = String::new();
    for u in &r.unread {
        let why = format!("document {} was not checked: {}", u.document, u.why);
        out.push_str(&format!(
            "::warning file={},line={},title=not checked::{}\n",
            property(&u.file),
            u.line,
            data(&why)
        ));
    }
    for f in &r.findings {
        let command = match f.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let text = format!("{}: {}\nfix: {}", f.subject(), f.message, f.fix);
        out.push_str(&format!(
            "::{command} file={},line={},title={}::{}\n",
            property(&f.source.file),
            f.at,
            property(&f.rule),
            data(&text)
        ));
    }
    out
}

/// As the runner reads it back.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// GitLab's list of issues.
#[must_use]
pub fn gitlab(r: &Report) -> Value {
    let issues = r.findings.iter().map(|f| {
        let severity = match f.severity {
            Severity::Error => "critical",
            Severity::Warning => "minor",
            Severity::Note => "info",
        };
        json!({
            "description": format!("{}: {}. Fix: {}.", f.subject(), f.message, f.fix),
            "check_name": f.rule,
            "fingerprint": f.fingerprint(),
            "severity": severity,
            "location": {"path": f.source.file, "lines": {"begin": f.at}},
        })
    });
    issues.collect()
}
