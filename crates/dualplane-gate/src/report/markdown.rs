//! The answer as a comment of a pull request.

use dualplane_base::text::{markdown_escape, printable};

use super::headline;
use crate::gate::{Gate, Outcome};

/// The answer as Markdown.
#[must_use]
pub fn markdown(g: &Gate) -> String {
    let cell = |t: &str| markdown_escape(&printable(t)).replace('\n', " ");
    let mut out = format!("## Memory gate {}\n\n", cell(&headline(g)));
    out.push_str(&format!("- candidate: {}\n", cell(&g.candidate)));
    out.push_str(&format!("- baseline: {}\n", cell(g.baseline.as_deref().unwrap_or("none"))));
    for d in &g.released {
        let said = |v: &Option<String>| cell(v.as_deref().unwrap_or("not said"));
        out.push_str(&format!("- {}: {}, was {}\n", cell(d.field.as_str()), said(&d.other), said(&d.one)));
    }
    let row = |c: &crate::gate::Check, mark: &str| {
        format!("| {mark} | {} | {} | {} |\n", cell(&c.id), cell(&c.asked), cell(&c.found))
    };
    let head = "\n| | check | asked | found |\n|---|---|---|---|\n";
    let some = |o: Outcome| g.checks.iter().filter(move |c| c.outcome == o);
    let bad: Vec<String> = some(Outcome::Fail)
        .map(|c| row(c, "❌"))
        .chain(some(Outcome::NotShown).map(|c| row(c, "❓")))
        .collect();
    if !bad.is_empty() {
        out.push_str(head);
        bad.iter().for_each(|r| out.push_str(r));
    }
    let good: Vec<String> = some(Outcome::Pass)
        .map(|c| row(c, "✅"))
        .chain(some(Outcome::NotApplicable).map(|c| row(c, "➖")))
        .collect();
    if !good.is_empty() {
        let n = dualplane_base::text::counted(good.len() as u64, "check");
        out.push_str(&format!("\n<details><summary>{n} without objection</summary>\n{head}"));
        good.iter().for_each(|r| out.push_str(r));
        out.push_str("\n</details>\n");
    }
    out
}
