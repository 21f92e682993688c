//! A document as Markdown, for a pull request or a ticket.

use std::fmt::Write as _;

use dualplane_base::text::markdown_escape;
use dualplane_gate::document::Measure;

use super::words;

/// Markdown.
#[must_use]
pub fn markdown(m: &Measure) -> String {
    let mut out = format!("## {}\n", markdown_escape(&words::subject(m)));
    if let Some(shape) = &m.shape {
        let _ = write!(out, "\nRequests: {}\n", markdown_escape(&shape.name));
    }
    for run in &m.runs {
        let _ =
            write!(out, "\n### {}\n\n{}\n", markdown_escape(&run.name), markdown_escape(&words::load(run)));
        for r in run.restarts.iter().flatten() {
            let class = r.class.as_deref().unwrap_or("died");
            let code = r.exit_code.map_or_else(String::new, |c| format!(", exit {c}"));
            let _ = write!(out, "\n**Died: {}{code}**\n", markdown_escape(class));
            if let Some(line) = &r.trigger {
                let _ = write!(out, "\n> {}\n", markdown_escape(line));
            }
        }
        table(&mut out, ["plane", "start-up", "steady", "peak", "limit", "of it"], &words::six(run));
        table(&mut out, ["", "mean", "p50", "p90", "p95", "p99", "most"], &words::latency(run));
        let rows = words::rows(m, run);
        if !rows.is_empty() {
            out.push('\n');
        }
        for (name, value) in rows.into_iter().filter(|(_, v)| !v.is_empty()) {
            let _ = writeln!(out, "- {name}: {}", markdown_escape(&value));
        }
        for (name, plane) in [("host RAM", &run.host), ("VRAM", &run.vram)] {
            if let Some(d) = plane.as_ref().and_then(|p| p.drift.as_ref()) {
                let _ = writeln!(out, "- {}", markdown_escape(&words::drift(name, d)));
            }
        }
    }
    if let Some(safe) = &m.safe {
        let at = safe
            .concurrency
            .map(|n| format!("{n} at once"))
            .or_else(|| safe.rate.map(|r| format!("{r} requests/s")));
        let _ = write!(out, "\nSafe load: {}", at.unwrap_or_else(|| "none of those that were tried".into()));
        if let Some(why) = &safe.bounded_by {
            let _ = write!(out, "; the next step: {}", markdown_escape(why));
        }
        out.push('\n');
    }
    out
}

fn table<const N: usize>(out: &mut String, heads: [&str; N], rows: &[[String; N]]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "\n| {} |\n|{}\n", heads.join(" | "), "---|".repeat(N));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|c| markdown_escape(c)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}
