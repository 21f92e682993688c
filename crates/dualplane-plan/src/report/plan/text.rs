//! A plan on one screen; `-v` for every term.

use super::bar::{cells, shares};
use super::timeline::speaker;
use super::{amount, band, engine, times, word};
use crate::edges::Edges;
use crate::report::page::Page;
use crate::{Answer, Plan, Verdict};
use dualplane_base::style::{Style, wrap};
use dualplane_base::text::printable;
use dualplane_base::units::{Bytes, GIB, thousands};

/// Without `-v`: unknown things and groups of layers.
const FEW: usize = 4;

/// Renders an answer.
#[must_use]
pub fn plan_text(a: &Answer, edges: &Edges, style: Style) -> String {
    let mut w = Page::new(style);
    w.title(a);
    w.measured(a);
    w.stages(a);
    if let Ok(plan) = &a.plan {
        w.gpu(plan, a);
        w.cache(plan, edges);
    }
    w.host(a);
    w.edges(edges);
    w.unknown(a);
    if style.verbose {
        w.terms(a);
    } else {
        w.out.push('\n');
        let dim = style.dim(
            "-v: every term with formula and source; --emit flags|resources|values|manifest; -o json: for programs",
        );
        w.line(&dim);
    }
    w.finish()
}

impl Page {
    fn title(&mut self, a: &Answer) {
        let verdict = word(a.verdict()).to_uppercase();
        let badge = match a.verdict() {
            Verdict::Fits => self.style.good(&verdict),
            Verdict::Refused => self.style.bad(&verdict),
            Verdict::Uncertain => self.style.bold(&verdict),
        };
        let cards = if a.gpus == 1 { a.gpu.name.clone() } else { format!("{} × {}", a.gpus, a.gpu.name) };
        let model = printable(&a.model).into_owned();
        let head = format!(
            "{badge}  {} on {}  {}",
            self.style.bold(&model),
            printable(&cards),
            self.style.dim(&engine(a))
        );
        self.line(&head);
        let ending = a.stages.ending.as_ref();
        let says = match ending.filter(|e| e.verdict == Verdict::Refused) {
            Some(e) => speaker(e),
            None if a.plan.is_ok() => "the engine would print:".into(),
            None => "no GPU plan:".into(),
        };
        self.wrapped(&says, "  ", "  ");
        for line in a.message().lines() {
            self.wrapped(line, "  > ", "    ");
        }
        match ending {
            Some(e) if e.verdict == Verdict::Refused => {
                self.wrapped(&format!("`triage` would call it {}", e.class), "  ", "  ");
            }
            Some(e) => {
                let text = format!("may end at {} as {}: {}", e.step.as_str(), e.class, e.why);
                self.wrapped(&text, "  ? ", "    ");
            }
            None => {}
        }
    }

    /// A start-up beside its prediction.
    fn measured(&mut self, a: &Answer) {
        if a.measured.is_empty() {
            return;
        }
        self.heading("Predicted versus printed");
        for m in &a.measured {
            let show = |n: u64| match m.unit {
                "bytes" => Bytes(n).to_string(),
                "hundredths" => times(n),
                _ => thousands(n),
            };
            let off = (m.predicted.expected as f64 - m.printed as f64) * 100.0 / (m.printed.max(1) as f64);
            let inside = m.predicted.is_exact() || (m.predicted.low..=m.predicted.high).contains(&m.printed);
            let remark = if inside { "" } else { "    outside the band" };
            self.line(&format!(
                "  {:<25}{:>13} {:>13}  {off:+.2} %{remark}",
                m.name,
                show(m.predicted.expected),
                show(m.printed)
            ));
        }
    }

    fn gpu(&mut self, plan: &Plan, a: &Answer) {
        let g = &plan.gpu;
        let rank = if plan.gpu.tightest_stage > 0 || a.line.launch.pp > 1 {
            format!(", tightest pipeline stage {}", g.tightest_stage)
        } else {
            String::new()
        };
        self.heading(&format!(
            "Each GPU  {} reported, the engine may use {}{rank}",
            Bytes(g.total_bytes),
            Bytes(g.requested_bytes)
        ));
        let shares = shares(g);
        let width = self.style.width.saturating_sub(4).min(96);
        let bar: String = shares
            .iter()
            .zip(cells(&shares, width))
            .flat_map(|(s, n)| std::iter::repeat_n(s.mark, n))
            .collect();
        self.line(&format!("  {bar}"));
        for s in &shares {
            let q = s.quantity;
            let spread = if q.is_exact() { String::new() } else { self.style.dim(&format!("  {}", band(q))) };
            self.line(&format!("  {} {:<14}{:>11}{spread}", s.mark, s.name, Bytes(q.expected).to_string()));
        }
        if let Some(c) = &a.calibration {
            let text = format!(
                "calibrated with a start-up on {}: {:+.2} GiB from the formula",
                printable(&c.gpu),
                -(c.pool_residual_bytes as f64) / GIB as f64
            );
            self.wrapped(&text, "  ", "  ");
        }
    }

    fn cache(&mut self, plan: &Plan, a: &Edges) {
        let kv = &plan.gpu.kv_cache;
        self.heading("KV cache");
        let spread = |low: String, high: String| {
            if low == high { String::new() } else { format!(" ({low} to {high})") }
        };
        let (t, c) = (kv.tokens, kv.max_concurrency_hundredths);
        self.line(&format!(
            "  {} tokens{}, {}{} requests of {} tokens",
            thousands(t.expected),
            spread(thousands(t.low), thousands(t.high)),
            times(c.expected),
            spread(times(c.low), times(c.high)),
            thousands(kv.max_model_len)
        ));
        self.line(&format!(
            "  {} blocks of {} tokens and {}; one full-length request needs {}",
            thousands(kv.blocks.expected),
            kv.block_size,
            Bytes(kv.bytes_per_block),
            Bytes(kv.needed_bytes)
        ));
        if kv.groups.len() > 1 {
            let most = self.limit(FEW);
            for g in kv.groups.iter().take(most) {
                self.line(&format!(
                    "  · {} layers {}: {} tokens a block, {} a page, {} blocks a request",
                    g.layers,
                    g.kind,
                    g.block_size,
                    Bytes(g.page_bytes),
                    thousands(g.blocks_per_request)
                ));
            }
            if kv.groups.len() > most {
                self.line(&format!("  · {} more groups", kv.groups.len() - most));
            }
        }
        let r = &plan.resolved;
        let quant = r.quantization.as_deref().map_or(String::new(), |q| format!(" ({q})"));
        self.cost(a);
        self.wrapped(
            &format!(
                "weights {}{quant}, KV {}, {}, {} sequences and {} tokens a step",
                r.dtype,
                r.kv_cache_dtype,
                r.attention_backend,
                thousands(r.max_num_seqs),
                thousands(r.max_num_batched_tokens)
            ),
            "  ",
            "  ",
        );
    }

    fn host(&mut self, a: &Answer) {
        let h = &a.host;
        match a.line.pods() {
            1 => self.heading("Pod RAM"),
            n => self.heading(&format!("Pod RAM  each of {n} pods with {} GPUs", a.gpus_of_pod())),
        }
        for (name, q) in [
            ("load peak", h.plan.load_peak_bytes),
            ("steady", h.plan.steady_bytes),
            ("shared memory", h.plan.shm_bytes),
        ] {
            self.line(&format!("  {name:<14}{}", amount(q)));
        }
        if h.plan.page_cache_bytes.high > 0 {
            let cache = format!(
                "  {:<14}{} reclaimable, not required",
                "page cache",
                Bytes(h.plan.page_cache_bytes.expected)
            );
            let dim = self.style.dim(&cache);
            self.line(&dim);
        }
        let shm = match h.shm_size_bytes / GIB {
            0 => String::new(),
            n => format!(", /dev/shm {n}Gi"),
        };
        self.line(&format!(
            "  set requests.memory {}Gi, limits.memory {}Gi{shm}",
            h.request_bytes / GIB,
            h.limit_bytes / GIB
        ));
        for f in &h.findings {
            let text = wrap(&printable(f), self.style.width, "  ! ", "    ");
            let bad = self.style.bad(&text);
            self.line(&bad);
        }
    }

    fn unknown(&mut self, a: &Answer) {
        if a.unknown.is_empty() {
            return;
        }
        self.heading("Unknown");
        let most = self.limit(FEW);
        for u in a.unknown.iter().take(most) {
            self.wrapped(&u.what, "  ? ", "    ");
            let settle = wrap(&printable(&u.settle), self.style.width, "      settle: ", "        ");
            let dim = self.style.dim(&settle);
            self.line(&dim);
        }
        if a.unknown.len() > most {
            self.line(&format!("  ? {} more with -v", a.unknown.len() - most));
        }
    }

    fn terms(&mut self, a: &Answer) {
        self.heading("Terms");
        let gpu = a.plan.iter().flat_map(|p| &p.terms);
        for t in gpu.chain(&a.host.terms) {
            self.line(&format!("  {:<5} {:<24} {}", t.plane.to_string(), t.name, amount(t.quantity)));
            self.wrapped(&format!("= {}", t.formula), "        ", "          ");
            let source = wrap(&printable(&t.source), self.style.width, "        from ", "          ");
            let dim = self.style.dim(&source);
            self.line(&dim);
        }
        for line in &a.host.arithmetic {
            self.wrapped(line, "  ", "    ");
        }
        self.wrapped(&format!("model facts: {}", a.model_source), "  ", "    ");
    }
}
