//! A hand-over note with a verification checklist.

use std::fmt::Write as _;

use super::Report;
use super::{about, changes, handover, memory, runbook};
use crate::actions::Stage;
use crate::words::Citation;
use dualplane_base::text::{
    markdown_escape as esc, markdown_fence as fence, markdown_indent as indent, printable,
};
use dualplane_core::verdict::Step;

/// Renders one report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let v = &report.verdict;
    let mut out = String::new();
    // Writing into a String cannot fail; `let _ =` keeps that out of every line.
    let _ = writeln!(out, "# {}: {}\n", esc(&report.name), v.class.title());
    let _ = writeln!(out, "{}.\n", esc(v.summary.trim_end_matches('.')));
    let _ = writeln!(out, "| class | plane | phase | confidence |\n|---|---|---|---|");
    let _ = writeln!(out, "| `{}` | {} | {} | {} |\n", v.class, v.class.plane(), v.phase, v.confidence);
    subject(report, &mut out);
    if let Some(p) = &v.pressure {
        let _ = writeln!(out, "## Memory against its limits\n");
        for line in memory::readings(p) {
            let _ = writeln!(out, "- {}", esc(&line));
        }
        if let Some((bound, list)) = memory::focus(p) {
            let _ = writeln!(out, "\n{bound}\n");
            for (i, what) in list.iter().enumerate() {
                let _ = writeln!(out, "{}. {}", i + 1, esc(what));
            }
        }
        out.push('\n');
    }
    if let Some(t) = &v.trigger {
        let line = t.place.line.map_or(String::new(), |l| format!(":{l}"));
        let _ = writeln!(out, "## First error\n\n{}{line}\n", esc(&t.place.file));
        let _ = writeln!(out, "{}\n", fence(&t.text));
    }
    let (followed, beside): (Vec<&Step>, Vec<&Step>) = v.sequence.iter().skip(1).partition(|s| s.follows);
    if !beside.is_empty() {
        let _ = writeln!(out, "## Before or beside it\n");
        for s in beside {
            let _ = writeln!(out, "- `{}`: {}", s.class, esc(&s.what));
        }
        out.push('\n');
    }
    if !followed.is_empty() || !v.cascade.is_empty() {
        let heading = if v.trigger.is_some() { "What followed" } else { "What else it printed" };
        let _ = writeln!(out, "## {heading}\n");
        for s in followed {
            let _ = writeln!(out, "1. `{}`: {}", s.class, esc(&s.what));
        }
        for c in &v.cascade {
            let line = c.first.line.map_or(String::new(), |l| format!(":{l}"));
            let _ = writeln!(out, "- {}× {} ({}{line})", c.count, esc(&c.meaning), esc(&c.first.file));
        }
        out.push('\n');
    }
    if !v.others.is_empty() {
        let _ = writeln!(out, "## Other containers of the pod that failed\n");
        for o in &v.others {
            let _ = writeln!(
                out,
                "- {}: `{}` ({}), {}",
                esc(&o.container),
                o.class,
                o.confidence,
                esc(&o.summary)
            );
        }
        out.push('\n');
    }
    let _ = writeln!(out, "## Causes\n");
    for (i, c) in report.causes.iter().enumerate() {
        let mark = if c.rejected { " — ruled out" } else { "" };
        let _ = writeln!(out, "{}. **{}** (`{}`, {}){mark}", i + 1, esc(&c.title), c.class, c.confidence);
        cites(&c.supports, "for", &mut out);
        cites(&c.against, "against", &mut out);
    }
    out.push('\n');
    points("Expected memory", &handover::budget(report), &mut out);
    for rollout in report.bundle.rollouts.iter().filter(|r| !r.changes.is_empty()) {
        let _ = writeln!(out, "## Changed before\n\n{}\n", esc(&changes::headline(report, rollout)));
        for c in &rollout.changes {
            let _ = writeln!(out, "- {}", esc(&changes::change(c)));
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "[Runbook of `{0}`]({1}), or `{2}`\n",
        v.class,
        runbook::link(v.class),
        runbook::command(v.class)
    );
    actions(report, &mut out);
    points("Hand-over", &handover::points(report), &mut out);
    let undo = handover::undo(report);
    if !undo.is_empty() {
        let _ = writeln!(out, "## Take back afterwards\n\nOf these, what was done:\n");
        for command in undo {
            let _ = writeln!(out, "- [ ] `{}`", printable(&command).replace('`', "'"));
        }
        out.push('\n');
    }
    if !v.missing.is_empty() {
        let _ = writeln!(out, "## Missing\n");
        for g in &v.missing {
            let _ = writeln!(out, "- {}: {}", esc(&g.what), esc(&g.why));
            if let Some(c) = &g.command {
                let _ = writeln!(out, "\n{}\n", indent(&fence(c)));
            }
        }
    }
    out
}

/// A heading with a point for each line; nothing without lines.
fn points(title: &str, lines: &[String], out: &mut String) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {title}\n");
    for line in lines {
        let _ = writeln!(out, "- {}", esc(line));
    }
    out.push('\n');
}

fn subject(report: &Report, out: &mut String) {
    for (key, value) in about::rows(report) {
        let _ = writeln!(out, "- {key}: {}", esc(&value));
    }
    out.push('\n');
}

fn actions(report: &Report, out: &mut String) {
    for stage in Stage::ALL {
        let of_stage: Vec<_> = report.actions.iter().filter(|a| a.stage == stage).collect();
        if of_stage.is_empty() {
            continue;
        }
        let _ = writeln!(out, "## {}\n", stage.title());
        for a in of_stage {
            // What is to be checked gets a box.
            let bullet = if stage == Stage::Avoid { "-" } else { "- [ ]" };
            let _ = writeln!(out, "{bullet} {}", esc(&a.title));
            for because in &a.arithmetic {
                let _ = writeln!(out, "  - {}", esc(because));
            }
            if !a.commands.is_empty() {
                let _ = writeln!(out, "\n{}\n", indent(&fence(&a.commands.join("\n"))));
            }
            if let Some(patch) = &a.patch {
                let _ = writeln!(out, "\n{}\n", indent(&fence(patch)));
            }
        }
        out.push('\n');
    }
}

fn cites(cites: &[Citation], word: &str, out: &mut String) {
    for c in cites {
        let at = c.place.as_ref().map_or(String::new(), |p| match p.line {
            Some(l) => format!(" ({}:{l})", esc(&p.file)),
            None => format!(" ({})", esc(&p.file)),
        });
        let _ = writeln!(out, "   - {word}: {}{at}", esc(&c.text));
    }
}
