//! A plan as a picture: one bar a GPU with the five consumers, one bar for the pod.

use std::fmt::Write as _;

use super::bar::shares;
use super::{amount, engine, times, word};
use crate::{Answer, Plane, Quantity, Term, Verdict};
use dualplane_base::text::markup;
use dualplane_base::units::{Bytes, GIB, thousands};

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 24.0;
const BAR: f64 = 34.0;
/// Height of a full column of the timeline.
const COLUMN: f64 = 60.0;
/// Bars beyond this are said in words.
const MAX_BARS: u64 = 8;
/// Terms of the pod have the colours of the GPU's consumers, in turn.
const COLOURS: [&str; 9] =
    ["#6d8fd6", "#7bd88f", "#ffd166", "#d9a0ff", "#ff8f6b", "#6fd3e3", "#c0c8d8", "#b08968", "#e35d8f"];

struct Canvas {
    out: String,
    y: f64,
}

impl Canvas {
    fn text(&mut self, x: f64, size: u32, colour: &str, text: &str) {
        // Writing into a String cannot fail.
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.0}\" y=\"{:.0}\" font-size=\"{size}\" fill=\"{colour}\">{}</text>",
            self.y,
            markup(text)
        );
    }

    /// One bar; the widths are of `whole`.
    fn bar(&mut self, parts: &[(Quantity, &str)], whole: u64) {
        let scale = (WIDTH - 2.0 * MARGIN) / whole.max(1) as f64;
        let mut x = MARGIN;
        for (q, colour) in parts {
            let width = (q.expected as f64 * scale).min(WIDTH - MARGIN - x).max(0.0);
            let _ = writeln!(
                self.out,
                "<rect x=\"{x:.1}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>",
                self.y
            );
            x += width;
        }
        self.y += BAR + 8.0;
    }

    /// The stages side by side: VRAM above, RAM of the pod below, and what ends them.
    fn timeline(&mut self, a: &Answer) {
        let list = &a.stages.list;
        self.text(MARGIN, 16, "#ffffff", "Start-up: VRAM of a GPU and RAM of the pod, stage by stage");
        let most = list.iter().map(|s| s.host_bytes.expected).max().unwrap_or(0);
        let limit = a.line.host.pod.limit.map_or(a.host.limit_bytes, |l| l.0);
        let room = (WIDTH - 2.0 * MARGIN) / list.len().max(1) as f64;
        let planes = [(a.gpu.total_bytes, "#6d8fd6", "VRAM"), (limit.max(most), "#7bd88f", "RAM")];
        for (i, (whole, colour, name)) in planes.into_iter().enumerate() {
            let base = self.y + COLUMN + 14.0;
            for (n, s) in list.iter().enumerate() {
                let bytes =
                    if i == 0 { s.gpu_bytes.map_or(0, |q| q.expected) } else { s.host_bytes.expected };
                let height = (bytes as f64 / whole.max(1) as f64).min(1.0) * COLUMN;
                let fails = s.verdict != Verdict::Fits
                    && a.stages.ending.as_ref().is_none_or(|e| (e.plane == Plane::Gpu) == (i == 0));
                let colour = match s.verdict {
                    Verdict::Refused if fails => "#ff6b6b",
                    Verdict::Uncertain if fails => "#ffd166",
                    _ => colour,
                };
                let x = MARGIN + room * n as f64;
                let _ = writeln!(
                    self.out,
                    "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>",
                    base - height,
                    room - 6.0
                );
                self.y = base + 14.0;
                self.text(x, 11, "#d8dee9", &format!("{name} {}", Bytes(bytes)));
                if i == 1 {
                    self.y = base + 28.0;
                    self.text(x, 12, "#ffffff", s.step.as_str());
                }
            }
            self.y = base + if i == 0 { 18.0 } else { 30.0 };
        }
        if let Some(e) = &a.stages.ending {
            self.y += 20.0;
            self.text(MARGIN, 13, "#ff6b6b", &format!("{} at {}: {}", e.class, e.step.as_str(), e.why));
        }
    }

    fn legend(&mut self, colour: &str, name: &str, value: &str) {
        self.y += 20.0;
        let _ = writeln!(
            self.out,
            "<rect x=\"{MARGIN}\" y=\"{:.0}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>",
            self.y - 11.0
        );
        self.text(MARGIN + 20.0, 13, "#d8dee9", name);
        self.text(MARGIN + 220.0, 13, "#d8dee9", value);
    }
}

/// Renders an answer.
#[must_use]
pub fn plan_svg(a: &Answer) -> String {
    let mut c = Canvas { out: String::new(), y: MARGIN + 16.0 };
    let title = format!("{}: {} on {} × {}, {}", word(a.verdict()), a.model, a.gpus, a.gpu.name, engine(a));
    c.text(MARGIN, 18, "#ffffff", &title);
    if let Ok(plan) = &a.plan {
        let g = &plan.gpu;
        let kv = &g.kv_cache;
        c.y += 24.0;
        let says = format!(
            "{} tokens, {} requests of {} tokens",
            thousands(kv.tokens.expected),
            times(kv.max_concurrency_hundredths.expected),
            thousands(kv.max_model_len)
        );
        c.text(MARGIN, 13, "#d8dee9", &says);
        c.y += 16.0;
        let shares = shares(g);
        let parts: Vec<(Quantity, &str)> = shares.iter().map(|s| (s.quantity, s.colour)).collect();
        for _ in 0..a.gpus.min(MAX_BARS) {
            c.bar(&parts, g.total_bytes);
        }
        if a.gpus > MAX_BARS {
            c.y += 8.0;
            c.text(MARGIN, 13, "#8a93a5", &format!("and {} more GPUs", a.gpus - MAX_BARS));
        }
        for s in &shares {
            c.legend(s.colour, s.name, &amount(s.quantity));
        }
    } else {
        c.y += 24.0;
        c.text(MARGIN, 13, "#ff6b6b", &a.message());
    }
    c.y += 36.0;
    c.timeline(a);
    let h = &a.host;
    c.y += 36.0;
    let pod = format!("Pod RAM: request {}Gi, limit {}Gi", h.request_bytes / GIB, h.limit_bytes / GIB);
    c.text(MARGIN, 16, "#ffffff", &pod);
    c.y += 14.0;
    let terms: Vec<&Term> =
        h.terms.iter().filter(|t| t.quantity.expected > 0 && !t.name.starts_with("page_cache")).collect();
    let colour = |i: usize| COLOURS.get(i % COLOURS.len()).copied().unwrap_or("#6d8fd6");
    let parts: Vec<(Quantity, &str)> =
        terms.iter().enumerate().map(|(i, t)| (t.quantity, colour(i))).collect();
    let sum: u64 = terms.iter().map(|t| t.quantity.expected).fold(0, u64::saturating_add);
    c.bar(&parts, h.limit_bytes.max(sum));
    for (i, t) in terms.iter().enumerate() {
        c.legend(colour(i), &t.name, &amount(t.quantity));
    }
    c.y += 24.0;
    let cache =
        format!("page cache {} is reclaimable and not required", Bytes(h.plan.page_cache_bytes.expected));
    c.text(MARGIN, 13, "#8a93a5", &cache);
    let height = c.y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#15181e\"/>\n\
         <g font-family=\"DejaVu Sans,Helvetica,Arial,sans-serif\">\n{}</g>\n</svg>\n",
        c.out
    )
}
