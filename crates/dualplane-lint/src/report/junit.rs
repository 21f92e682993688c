//! Findings as JUnit's XML: a suite for each file, a case for each finding.

use super::Report;
use crate::finding::{Finding, Severity};

/// The report as XML.
#[must_use]
pub fn junit(r: &Report) -> String {
    let failed = |f: &&Finding| f.severity != Severity::Note;
    let failures = r.findings.iter().filter(failed).count();
    let cases = r.findings.len() + r.unread.len() + usize::from(r.findings.is_empty() && r.unread.is_empty());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"dualplane lint\" tests=\"{cases}\" failures=\"{failures}\" errors=\"{}\">\n",
        r.unread.len()
    );
    if r.findings.is_empty() && r.unread.is_empty() {
        out.push_str(&format!(
            "    <testcase name=\"{} objects\" classname=\"dualplane lint\"/>\n",
            r.objects
        ));
    }
    for u in &r.unread {
        out.push_str(&format!(
            "    <testcase name=\"document {}\" classname=\"{}\"><error message=\"{}\"/></testcase>\n",
            u.document,
            xml(&u.file),
            xml(&u.why)
        ));
    }
    for f in &r.findings {
        let name = format!("{}: {}", f.rule, f.subject());
        let body = if failed(&f) {
            let at = format!("{}:{}\nfix: {}", f.source.file, f.at, f.fix);
            format!(
                "<failure type=\"{}\" message=\"{}\">{}</failure>",
                f.severity.as_str(),
                xml(&f.message),
                xml(&at)
            )
        } else {
            format!("<system-out>{}</system-out>", xml(&f.message))
        };
        out.push_str(&format!(
            "    <testcase name=\"{}\" classname=\"{}\">{body}</testcase>\n",
            xml(&name),
            xml(&f.source.file)
        ));
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// Text between tags and quotes. XML 1.0 has no place for controls.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
