//! Settings and cards for a workload, as text and as `dualplane.fit/v1`.

use std::fmt::Write as _;

use serde::Serialize;

use super::band;
use crate::Verdict;
use crate::fit::{Fitted, Workload};
use dualplane_base::style::{Style, wrap};
use dualplane_base::text::{markdown_escape, printable};
use dualplane_base::units::{Bytes, GIB, thousands};

/// Without `-v`: alternatives shown.
const FEW: usize = 10;

/// Schema id.
pub const FIT: &str = "dualplane.fit/v1";

/// What `fit` found.
#[derive(Debug, Serialize)]
pub struct FitReport<'a> {
    /// Model id or path.
    pub model: &'a str,
    /// Engine and version.
    pub engine: String,
    /// What is to be served.
    pub workload: Workload,
    /// Settings for the card that was asked for.
    pub here: Option<&'a Fitted>,
    /// Other cards, ranks and quantisations: what holds first, then by memory paid for.
    pub alternatives: &'a [Fitted],
}

#[derive(Serialize)]
struct FitV1<'a> {
    schema: &'static str,
    #[serde(flatten)]
    report: &'a FitReport<'a>,
}

/// As JSON.
///
/// # Errors
/// Not on any report: the structures hold nothing that JSON cannot.
pub fn fit_json(r: &FitReport<'_>) -> Result<String, serde_json::Error> {
    dualplane_base::json::pretty(&FitV1 { schema: FIT, report: r })
}

fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Fits => "holds",
        Verdict::Uncertain => "maybe",
        Verdict::Refused => "no",
    }
}

/// As text.
#[must_use]
pub fn fit_text(r: &FitReport<'_>, style: Style) -> String {
    let mut out = String::new();
    let w = &r.workload;
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{}  {}", style.bold(&printable(r.model)), style.dim(&r.engine));
    let _ = writeln!(
        out,
        "  {} concurrent requests, typical {} tokens, longest {} tokens",
        thousands(w.concurrency),
        thousands(w.usual_tokens),
        thousands(w.longest_tokens)
    );
    if let Some(f) = r.here {
        let badge = match f.holds {
            Verdict::Fits => style.good("HOLDS"),
            Verdict::Refused => style.bad("DOES NOT FIT"),
            Verdict::Uncertain => style.bold("UNCERTAIN"),
        };
        let line = format!("{badge}  {} × {}  {}", f.gpus, printable(&f.gpu), printable(&f.remark));
        let _ = writeln!(out, "\n{}", line.trim_end());
        for (flag, value) in settings(f, w) {
            let _ = writeln!(out, "  --{flag} {value}");
        }
        let _ = writeln!(out, "  longest context that starts: {} tokens", thousands(f.max_model_len));
        let _ = writeln!(
            out,
            "  weights {}, KV cache {} on each GPU",
            Bytes(f.weights_bytes.expected),
            band(f.pool_bytes)
        );
    }
    let _ = writeln!(out, "\n{}", style.bold("Alternatives, by total VRAM"));
    let _ = writeln!(
        out,
        "  {:<6} {:<15}{:>5}  {:<22}{:>6}{:>9}{:>8}  what it costs",
        "", "card", "GPUs", "weights / KV", "VRAM", "tokens", "seqs"
    );
    let most = if style.verbose { usize::MAX } else { FEW };
    for f in r.alternatives.iter().take(most) {
        let kinds = format!("{} / {}", f.quantization.as_deref().unwrap_or("16 bit"), f.kv_cache_dtype);
        let row = format!(
            "  {:<6} {:<15}{:>5}  {:<22}{:>5}G{:>9}{:>8}",
            verdict(f.holds),
            printable(&f.gpu),
            f.gpus,
            kinds,
            f.rented_bytes / GIB,
            thousands(f.max_model_len),
            thousands(f.max_num_seqs),
        );
        // A remark that does not fit stands below its row.
        let remark = printable(&f.remark);
        let fits = row.chars().count() + 2 + remark.chars().count() <= style.width.max(110);
        let _ = match remark.is_empty() {
            true => writeln!(out, "{row}"),
            false if fits => writeln!(out, "{row}  {remark}"),
            false => writeln!(out, "{row}\n{}", wrap(&remark, style.width, "         ", "         ")),
        };
    }
    if r.alternatives.len() > most {
        let _ = writeln!(out, "  {} more with -v", r.alternatives.len() - most);
    }
    let _ = writeln!(
        out,
        "\n{}",
        style.dim(
            "tokens: longest context that starts; seqs: concurrent \
    requests of the planned length; prices are not considered; fp8 reduces accuracy"
        )
    );
    out
}

/// Flags to set: the longest request that is asked for, and as many at once as fit.
fn settings(f: &Fitted, w: &Workload) -> Vec<(&'static str, String)> {
    let mut out = vec![
        ("tensor-parallel-size", f.tp.to_string()),
        ("max-model-len", w.longest_tokens.min(f.max_model_len).to_string()),
        ("max-num-seqs", f.max_num_seqs.to_string()),
        ("gpu-memory-utilization", format!("{:.2}", f.gpu_memory_utilization)),
    ];
    if f.kv_cache_dtype != "auto" {
        out.push(("kv-cache-dtype", f.kv_cache_dtype.clone()));
    }
    out
}

/// As Markdown.
#[must_use]
pub fn fit_markdown(r: &FitReport<'_>) -> String {
    let safe = |t: &str| markdown_escape(&printable(t)).replace('|', "\\|");
    let w = &r.workload;
    let mut out = format!(
        "# GPUs for {}\n\n{} concurrent requests, typical {} tokens, longest {} tokens ({}).\n\n| | \
        card | GPUs | weights | KV | VRAM GiB | longest | sequences | costs \
        |\n|---|---|---|---|---|---|---|---|---|\n",
        safe(r.model),
        w.concurrency,
        thousands(w.usual_tokens),
        thousands(w.longest_tokens),
        safe(&r.engine)
    );
    for f in r.here.into_iter().chain(r.alternatives) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            verdict(f.holds),
            safe(&f.gpu),
            f.gpus,
            safe(f.quantization.as_deref().unwrap_or("16 bit")),
            safe(&f.kv_cache_dtype),
            f.rented_bytes / GIB,
            thousands(f.max_model_len),
            thousands(f.max_num_seqs),
            safe(&f.remark)
        );
    }
    out
}
