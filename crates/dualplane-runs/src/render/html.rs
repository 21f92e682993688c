//! A document as one page of HTML: nothing is loaded from elsewhere, and nothing runs.

use std::fmt::Write as _;

use dualplane_base::plot;
use dualplane_base::text::markup;
use dualplane_gate::document::{Measure, Run};

use super::plot::{Plot, draw};
use super::words;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5c6877;--line:#d9dee5;--page:#fff;--card:#f6f8fa;--host:#0b6bcb;--vram:#7a3db8;--anon:#0b6bcb;--shmem:#d97706;--file:#7f8b99;--kv:#0f8a5f;--run:#0f8a5f;--wait:#c2410c;--rate:#0b6bcb;--bad:#b42318}\
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b5;--line:#2d3642;--page:#11161d;--card:#182029;--host:#5aa9ff;--vram:#c08cf5;--anon:#5aa9ff;--shmem:#f2a64a;--file:#8894a3;--kv:#4fd1a1;--run:#4fd1a1;--wait:#ff8f5c;--rate:#5aa9ff;--bad:#ff7b72}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:62rem;padding:1.5rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}\
h1{font-size:1.4rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .3rem}p{margin:.3rem 0}.soft{color:var(--soft)}\
table{border-collapse:collapse;margin:.8rem 0;font-variant-numeric:tabular-nums}th,td{padding:.25rem .9rem .25rem 0;text-align:right;border-bottom:1px solid var(--line)}th:first-child,td:first-child{text-align:left}th{font-weight:600;color:var(--soft)}\
.wide{overflow-x:auto}.died{border-left:4px solid var(--bad);padding:.4rem .8rem;background:var(--card)}.died code{overflow-wrap:anywhere}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.2rem}dt{color:var(--soft)}dd{margin:0}";

const PLOTS: &[Plot<'static>] = &[
    Plot {
        title: "Host RAM",
        lines: &[("host", "held: anonymous and shared", "host")],
        limit: Some("host.limit"),
    },
    Plot { title: "VRAM", lines: &[("vram", "in use", "vram")], limit: Some("vram.limit") },
    Plot {
        title: "Host RAM by kind",
        lines: &[
            ("host.anon", "anonymous", "anon"),
            ("host.shmem", "shared and pinned", "shmem"),
            ("host.file", "page cache", "file"),
        ],
        limit: None,
    },
    Plot { title: "KV cache", lines: &[("kv", "used", "kv")], limit: None },
    Plot {
        title: "Requests in the server",
        lines: &[("running", "run", "run"), ("waiting", "wait", "wait")],
        limit: None,
    },
    Plot { title: "Requests sent, a second", lines: &[("rate", "sent", "rate")], limit: None },
    Plot { title: "Cards", lines: &[("gpu", "busy", "vram")], limit: None },
];

/// The page.
#[must_use]
pub fn html(m: &Measure) -> String {
    let title = markup(&words::subject(m));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{title}</title><style>{STYLE}{}</style></head><body>\n<h1>{title}</h1>\n",
        plot::STYLE
    );
    let mut about: Vec<String> = Vec::new();
    about.extend(m.started_at.clone());
    about.extend(m.shape.as_ref().map(|s| format!("requests: {}", s.name)));
    about.extend(m.tool.load_tool.as_ref().map(|t| format!("load by {t}")));
    about.push(format!("{} {}", m.tool.name, m.tool.version));
    let _ = writeln!(out, "<p class=\"soft\">{}</p>", markup(&about.join(" · ")));
    if let Some(safe) = &m.safe {
        let at = safe
            .concurrency
            .map(|n| format!("{n} at once"))
            .or_else(|| safe.rate.map(|r| format!("{r} requests/s")));
        let at = at.unwrap_or_else(|| "none of those that were tried".into());
        let why = safe.bounded_by.as_ref().map_or_else(String::new, |w| format!("; the next step: {w}"));
        let _ = writeln!(out, "<p><b>Safe load: {}</b>{}</p>", markup(&at), markup(&why));
    }
    for r in &m.runs {
        run(&mut out, m, r);
    }
    out += "</body></html>\n";
    out
}

fn run(out: &mut String, m: &Measure, run: &Run) {
    let _ =
        writeln!(out, "<h2>{}</h2><p class=\"soft\">{}</p>", markup(&run.name), markup(&words::load(run)));
    for r in run.restarts.iter().flatten() {
        let class = r.class.as_deref().unwrap_or("died");
        let code = r.exit_code.map_or_else(String::new, |c| format!(", exit {c}"));
        let line = r.trigger.as_ref().map_or_else(String::new, |t| format!("<br><code>{}</code>", markup(t)));
        let _ = writeln!(out, "<p class=\"died\"><b>Died: {}</b>{}{line}</p>", markup(class), markup(&code));
    }
    table(out, ["", "start-up", "steady", "peak", "limit", "of it"], &words::six(run));
    for (name, plane) in [("host RAM", &run.host), ("VRAM", &run.vram)] {
        if let Some(d) = plane.as_ref().and_then(|p| p.drift.as_ref()) {
            let _ = writeln!(out, "<p>{}</p>", markup(&words::drift(name, d)));
        }
    }
    table(out, ["", "mean", "p50", "p90", "p95", "p99", "most"], &words::latency(run));
    let rows = words::rows(m, run);
    if !rows.is_empty() {
        *out += "<dl>";
        for (name, value) in rows.into_iter().filter(|(_, v)| !v.is_empty()) {
            let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", markup(name), markup(&value));
        }
        *out += "</dl>\n";
    }
    if !run.processes.is_empty() {
        let of = |p: &dualplane_gate::document::ProcessMemory| {
            [
                p.name.clone(),
                words::bytes(p.peak_bytes),
                words::bytes(p.anon_bytes),
                words::bytes(p.vram_bytes),
            ]
        };
        let rows: Vec<[String; 4]> = run.processes.iter().map(of).collect();
        table(out, ["process", "resident", "anonymous", "VRAM"], &rows);
    }
    if let Some(series) = &run.series {
        PLOTS.iter().for_each(|plot| draw(series, plot, out));
    }
}

fn table<const N: usize>(out: &mut String, heads: [&str; N], rows: &[[String; N]]) {
    if rows.is_empty() {
        return;
    }
    *out += "<div class=\"wide\"><table><tr>";
    for h in heads {
        let _ = write!(out, "<th>{}</th>", markup(h));
    }
    *out += "</tr>";
    for row in rows {
        *out += "<tr>";
        for c in row {
            let _ = write!(out, "<td>{}</td>", markup(c));
        }
        *out += "</tr>";
    }
    *out += "</table></div>\n";
}
