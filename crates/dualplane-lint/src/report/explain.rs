//! A rule for people: what it says, why, and what to change; and the table of all of them.

use dualplane_base::style::{Style, wrap};
use serde_json::{Value, json};

use crate::rule::{Rule, Rules};
use crate::suppress::ANNOTATION;

/// One rule as text.
#[must_use]
pub fn explain(rule: &Rule, style: Style) -> String {
    let mut out = format!("{}  {}\n\n", style.bold(&rule.id), rule.severity.as_str());
    let mut add = |head: &str, text: &str| {
        out.push_str(&wrap(text, style.width, head, &" ".repeat(head.len())));
        out.push('\n');
    };
    add("what:    ", &rule.title);
    add("why:     ", &rule.why);
    // What is computed has no value here.
    let fix =
        rule.values.keys().fold(rule.fix.clone(), |t, k| t.replace(&format!("{{{k}}}"), &format!("<{k}>")));
    add("fix:     ", &fix);
    add("source:  ", &rule.source);
    match &rule.holds {
        Some(holds) => add("holds:   ", holds),
        None => add("holds:   ", "where the arithmetic of `dualplane plan` and the command line say so"),
    }
    add("ignore:  ", &format!("annotation {ANNOTATION}{}: \"the reason\"", rule.id));
    out
}

/// One rule as a value.
#[must_use]
pub fn explain_json(rule: &Rule) -> Value {
    json!({
        "rule": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "why": rule.why,
        "fix": rule.fix,
        "source": rule.source,
        "holds": rule.holds,
        "check": rule.check,
        "kinds": rule.kinds,
    })
}

/// All rules as a table of Markdown.
#[must_use]
pub fn table() -> String {
    let mut out = String::from("| rule | severity | what it finds | by |\n|---|---|---|---|\n");
    for r in Rules::embedded().list() {
        let by = if r.holds.is_some() { "CEL" } else { "plan" };
        out.push_str(&format!(
            "| `{}` | {} | {} | {by} |\n",
            r.id,
            r.severity.as_str(),
            r.title.replace('|', "\\|")
        ));
    }
    out
}
