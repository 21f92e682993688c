//! A document on a terminal.

use dualplane_base::style::Style;
use dualplane_base::text::printable;
use dualplane_base::writer::Writer;
use dualplane_gate::document::Measure;

use super::words;

/// Text for a terminal.
#[must_use]
pub fn text(m: &Measure, style: Style) -> String {
    let mut w = Writer::new(style);
    w.line(&style.bold(&printable(&words::subject(m))));
    if let Some(shape) = &m.shape {
        w.line(&format!("  requests: {}", printable(&shape.name)));
    }
    if let Some(tool) = &m.tool.load_tool {
        w.line(&format!("  load by {}", printable(tool)));
    }
    for run in &m.runs {
        w.heading(&format!("{}  {}", printable(&run.name), printable(&words::load(run))));
        for r in run.restarts.iter().flatten() {
            let what = r.class.as_deref().unwrap_or("died");
            let code = r.exit_code.map_or_else(String::new, |c| format!(", exit {c}"));
            w.line(&format!("  {} {}{code}", style.bad("DIED"), printable(what)));
            if let Some(line) = &r.trigger {
                w.wrapped(line, "    > ", "      ");
            }
        }
        let six = words::six(run);
        if !six.is_empty() {
            w.line(&format!(
                "  {:<15} {:>11} {:>11} {:>11} {:>11} {:>8}",
                "", "start-up", "steady", "peak", "limit", "of it"
            ));
            for [name, start, steady, peak, limit, share] in &six {
                w.line(&format!("  {name:<15} {start:>11} {steady:>11} {peak:>11} {limit:>11} {share:>8}"));
            }
        }
        let drifts = [("host RAM", &run.host), ("VRAM", &run.vram)];
        for (name, plane) in drifts {
            if let Some(d) = plane.as_ref().and_then(|p| p.drift.as_ref()) {
                w.wrapped(&words::drift(name, d), "  ", "    ");
            }
        }
        let latency = words::latency(run);
        if !latency.is_empty() {
            w.line(&format!(
                "  {:<15} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                "", "mean", "p50", "p90", "p95", "p99", "most"
            ));
            for [name, a, b, c, d, e, f] in &latency {
                w.line(&format!("  {name:<15} {a:>9} {b:>9} {c:>9} {d:>9} {e:>9} {f:>9}"));
            }
        }
        for (name, value) in words::rows(m, run).into_iter().filter(|(_, v)| !v.is_empty()) {
            w.wrapped(&value, &format!("  {name:<15} "), "                  ");
        }
        for p in run.processes.iter().take(w.limit(4)) {
            let anon =
                p.anon_bytes.map_or_else(String::new, |n| format!(", anonymous {}", words::bytes(Some(n))));
            let vram = p.vram_bytes.map_or_else(String::new, |n| format!(", VRAM {}", words::bytes(Some(n))));
            let line = format!("{}  {}{anon}{vram}", printable(&p.name), words::bytes(p.peak_bytes));
            w.wrapped(&line, "  process         ", "                  ");
        }
    }
    if let Some(safe) = &m.safe {
        w.heading("Safe load");
        let at = safe
            .concurrency
            .map(|n| format!("{n} at once"))
            .or_else(|| safe.rate.map(|r| format!("{r} requests/s")));
        w.line(&format!("  {}", at.unwrap_or_else(|| "none of those that were tried".into())));
        if let Some(why) = &safe.bounded_by {
            w.wrapped(&format!("the next step: {why}"), "  ", "  ");
        }
    }
    w.out
}
