//! The answer as JUnit's XML: a case for each check.

use super::word;
use crate::gate::{Gate, Outcome};

/// The answer as XML.
#[must_use]
pub fn junit(g: &Gate) -> String {
    let count = |o: Outcome| g.checks.iter().filter(|c| c.outcome == o).count();
    // What is not shown fails too: a tool that reads failures only must not take it for a pass.
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"dualplane gate\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
        g.checks.len().max(1),
        count(Outcome::Fail) + count(Outcome::NotShown) + usize::from(g.checks.is_empty()),
        count(Outcome::NotApplicable),
    );
    if g.checks.is_empty() {
        out.push_str("    <testcase name=\"policy\" classname=\"dualplane gate\"><failure type=\"not_shown\" message=\"the policy asks for nothing\"/></testcase>\n");
    }
    for c in &g.checks {
        let body = match c.outcome {
            Outcome::Fail | Outcome::NotShown => format!(
                "<failure type=\"{}\" message=\"{}\">asked: {}</failure>",
                word(c.outcome),
                xml(&c.found),
                xml(&c.asked)
            ),
            Outcome::NotApplicable => format!("<skipped message=\"{}\"/>", xml(&c.found)),
            Outcome::Pass => format!("<system-out>{}</system-out>", xml(&c.found)),
        };
        out.push_str(&format!(
            "    <testcase name=\"{}\" classname=\"dualplane gate\">{body}</testcase>\n",
            xml(&c.id)
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
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
