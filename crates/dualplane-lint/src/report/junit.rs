//! Findings as JUnit's XML: a case for each finding, and for each document that could not be read.

use dualplane_base::junit::{Case, Outcome, junit as suite};
use jiff::Timestamp;

use super::Report;
use crate::finding::{Finding, Severity};

/// The report as XML. A note is a case that passes; what it says stands behind the cases.
#[must_use]
pub fn junit(r: &Report, at: Timestamp) -> String {
    let unread = r.unread.iter().map(|u| Case {
        name: format!("document {}", u.document),
        class: u.file.clone(),
        outcome: Outcome::Error { kind: "unread".to_owned(), message: u.why.clone() },
    });
    let found = r.findings.iter().map(|f| Case {
        name: name(f),
        class: f.source.file.clone(),
        outcome: match f.severity {
            Severity::Note => Outcome::Pass,
            severity => Outcome::Failure {
                kind: severity.as_str().to_owned(),
                message: f.message.clone(),
                body: format!("{}:{}\nfix: {}", f.source.file, f.at, f.fix),
            },
        },
    });
    let mut cases: Vec<Case> = unread.chain(found).collect();
    if cases.is_empty() {
        let (name, class) = (format!("{} objects", r.objects), "dualplane lint".to_owned());
        cases.push(Case { name, class, outcome: Outcome::Pass });
    }
    let notes = r.findings.iter().filter(|f| f.severity == Severity::Note);
    let notes: Vec<String> = notes.map(|f| format!("{}: {}", name(f), f.message)).collect();
    suite("dualplane lint", at, &cases, &notes)
}

fn name(f: &Finding) -> String {
    format!("{}: {}", f.rule, f.subject())
}
