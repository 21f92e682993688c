//! The note for the next shift, in Markdown: what died of what, what to do, what to take back, what is open.

use std::fmt::Write as _;

use crate::incident::{class_word, plane_name, summary, workload};
use crate::text::instant;
use crate::verdict::Verdict;
use dualplane_base::text::{
    markdown_escape as esc, markdown_fence as fence, markdown_indent as indent, printable,
};
use dualplane_incidents::Incident;
use dualplane_report::actions::Stage;

/// Files that are named.
const FILES: usize = 20;

/// The note. `link` is where the page can be seen.
#[must_use]
pub fn handover(i: &Incident, v: &Verdict, link: &str) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail; `let _ =` keeps that out of every line.
    let _ = writeln!(out, "# {}: {}\n", esc(&workload(i)), esc(&i.title));
    let _ = writeln!(out, "{}.\n", esc(summary(i)));
    let _ = writeln!(out, "| memory | class | phase | confidence |\n|---|---|---|---|");
    let _ = writeln!(out, "| {} | `{}` | {} | {} |\n", plane_name(i), class_word(i), i.phase, i.confidence);
    let mut rows = vec![("died", instant(i.died_at.ms()))];
    if i.occurrences > 1 {
        rows.push(("times of this cause", i.occurrences.to_string()));
    }
    let facts = [
        ("cluster", &i.cluster),
        ("namespace", &i.namespace),
        ("pod", &i.pod),
        ("container", &i.container),
        ("node", &i.node),
        ("model", &i.model),
        ("engine", &i.engine),
        ("engine version", &i.engine_version),
        ("image", &i.image),
    ];
    rows.extend(facts.into_iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k, v.clone())));
    if let Some(n) = v.subject.restarts {
        rows.push(("restarts at the failure", format!("{n}; a higher number later is a new failure")));
    }
    for (key, value) in rows {
        let _ = writeln!(out, "- {key}: {}", esc(&value));
    }
    out.push('\n');
    if let Some(t) = &v.trigger {
        let _ = writeln!(out, "## First error\n\n{}\n\n{}\n", esc(&t.at()), fence(&t.text));
    }
    if !v.changes.is_empty() {
        let _ = writeln!(out, "## Changed before\n");
        for c in &v.changes {
            let of = |side: &Option<String>| side.as_deref().map_or_else(|| "not set".to_owned(), esc);
            let _ = writeln!(out, "- {}: {} → {}", esc(&c.field), of(&c.before), of(&c.after));
        }
        out.push('\n');
    }
    actions(v, &mut out);
    let back: Vec<String> = v
        .actions
        .iter()
        .filter(|a| a.stage == "stop_the_bleeding")
        .flat_map(|a| &a.commands)
        .filter_map(|c| dualplane_report::takes_back(c))
        .collect();
    if !back.is_empty() {
        let _ = writeln!(out, "## Take back afterwards\n\nOf these, what was done:\n");
        for command in back {
            let _ = writeln!(out, "- [ ] `{}`", printable(&command).replace('`', "'"));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "## Open\n");
    if v.missing.is_empty() {
        let _ = writeln!(out, "Nothing that the verdict needs is missing.\n");
    }
    for g in &v.missing {
        let _ = writeln!(out, "- {}: {}", esc(&g.what), esc(&g.why));
        if let Some(c) = &g.command {
            let _ = writeln!(out, "\n{}\n", indent(&fence(c)));
        }
    }
    if !v.evidence.is_empty() {
        let names: Vec<String> = v.evidence.iter().take(FILES).map(|f| esc(f)).collect();
        let more = v.evidence.len().saturating_sub(FILES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(out, "\nEvidence kept: {}{more}", names.join(", "));
    }
    let _ = writeln!(out, "\n<{}>", printable(link).replace(['<', '>', ' '], ""));
    out
}

fn actions(v: &Verdict, out: &mut String) {
    for stage in Stage::ALL {
        let id = crate::incident::stage_id(stage);
        let of: Vec<_> = v.actions.iter().filter(|a| a.stage == id).collect();
        if of.is_empty() {
            continue;
        }
        let _ = writeln!(out, "## {}\n", stage.title());
        for a in of {
            // What is to be done gets a box.
            let bullet = if stage == Stage::Avoid { "-" } else { "- [ ]" };
            let _ = writeln!(out, "{bullet} {}", esc(&a.title));
            for s in &a.arithmetic {
                let _ = writeln!(out, "  - {}", esc(s));
            }
            let code = a.commands.iter().chain(&a.patch);
            for c in code {
                let _ = writeln!(out, "\n{}\n", indent(&fence(c)));
            }
        }
        out.push('\n');
    }
}
