//! A plan for a ticket or a design document.

use std::fmt::Write as _;

use super::bar::shares;
use super::{amount, band, engine, times, word};
use crate::edges::Edges;
use crate::{Answer, Verdict};
use dualplane_base::text::{markdown_escape, printable};
use dualplane_base::units::{Bytes, GIB, thousands};

/// Renders an answer.
#[must_use]
pub fn plan_markdown(a: &Answer, edges: &Edges) -> String {
    let safe = |t: &str| markdown_escape(&printable(t)).to_string();
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(out, "# Memory plan: {} on {} × {}\n", safe(&a.model), a.gpus, safe(&a.gpu.name));
    let _ = writeln!(out, "**{}** ({})\n", word(a.verdict()), safe(&engine(a)));
    for line in a.message().lines() {
        let _ = writeln!(out, "> {}", safe(line));
    }
    if let Some(e) = &a.stages.ending {
        let may = if e.verdict == Verdict::Refused { "Ends" } else { "May end" };
        let _ = writeln!(out, "\n{may} at {} as `{}`: {}.", e.step.as_str(), e.class, safe(&e.why));
    }
    let _ = writeln!(out, "\n## Stages\n\n| stage | VRAM in use | RAM of the pod | |\n|---|---|---|---|");
    for s in &a.stages.list {
        let vram = s.gpu_bytes.map_or_else(|| "not computed".into(), amount);
        let state = match s.verdict {
            Verdict::Fits => "",
            Verdict::Uncertain => "uncertain",
            Verdict::Refused => "**ends here**",
        };
        let _ = writeln!(out, "| {} | {vram} | {} | {state} |", s.step.as_str(), amount(s.host_bytes));
    }
    if let Ok(plan) = &a.plan {
        let g = &plan.gpu;
        let _ = writeln!(out, "\n## Each GPU\n\n| | expected | band |\n|---|---|---|");
        let _ = writeln!(out, "| reported by the driver | {} | |", Bytes(g.total_bytes));
        for s in shares(g) {
            let q = s.quantity;
            let spread = if q.is_exact() { String::new() } else { band(q) };
            let _ = writeln!(out, "| {} | {} | {spread} |", s.name, Bytes(q.expected));
        }
        let kv = &g.kv_cache;
        let _ = writeln!(
            out,
            "\n{} tokens, {} concurrent requests of {} tokens; blocks of {} tokens.",
            thousands(kv.tokens.expected),
            times(kv.max_concurrency_hundredths.expected),
            thousands(kv.max_model_len),
            kv.block_size
        );
    }
    let h = &a.host;
    let _ = writeln!(out, "\n## Pod RAM\n\n| | expected | band |\n|---|---|---|");
    for (name, q) in [
        ("load peak", h.plan.load_peak_bytes),
        ("steady", h.plan.steady_bytes),
        ("shared memory (included above)", h.plan.shm_bytes),
        ("page cache (reclaimable)", h.plan.page_cache_bytes),
    ] {
        let _ = writeln!(out, "| {name} | {} | {} |", Bytes(q.expected), band(q));
    }
    let _ = writeln!(
        out,
        "\nRequest {}Gi, limit {}Gi, /dev/shm {}Gi.",
        h.request_bytes / GIB,
        h.limit_bytes / GIB,
        h.shm_size_bytes / GIB
    );
    for f in &h.findings {
        let _ = writeln!(out, "\n**Finding:** {}", safe(f));
    }
    if !edges.ways.is_empty() {
        let _ = writeln!(out, "\n## What would start\n");
        for way in &edges.ways {
            let flags = way.flags.iter().map(|f| format!("`{f}` ")).collect::<String>();
            let _ = writeln!(out, "- {flags}{}", safe(&way.text));
        }
    }
    if !edges.list.is_empty() {
        let _ = writeln!(out, "\n## Edges\n");
        for e in &edges.list {
            let _ = writeln!(out, "- {}", safe(&e.text));
        }
    }
    if !edges.templates.is_empty() {
        let _ = writeln!(
            out,
            "\n## Templates\n\n| | --gpu-memory-utilization | --max-model-len | --max-num-seqs | verdict | |\n|---|---|---|---|---|---|"
        );
        for t in &edges.templates {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                t.name,
                t.gpu_memory_utilization,
                t.max_model_len,
                t.max_num_seqs,
                word(t.verdict),
                safe(&t.why)
            );
        }
    }
    let _ = writeln!(
        out,
        "\n## Terms\n\n| plane | term | expected | band | formula | source |\n|---|---|---|---|---|---|"
    );
    for t in a.plan.iter().flat_map(|p| &p.terms).chain(&h.terms) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            t.plane,
            safe(&t.name),
            Bytes(t.quantity.expected),
            band(t.quantity),
            safe(&t.formula).replace('|', "\\|"),
            safe(&t.source).replace('|', "\\|")
        );
    }
    if !a.unknown.is_empty() {
        let _ = writeln!(out, "\n## Unknown\n");
        for u in &a.unknown {
            let _ = writeln!(out, "- {} ({})", safe(&u.what), safe(&u.settle));
        }
    }
    out
}
