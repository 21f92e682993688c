//! Plans as people and programs read them: text, JSON, YAML, Markdown, SVG, and what to paste into flags and manifests.

mod bar;
mod beside;
mod emit;
mod fit;
pub mod json;
mod lists;
mod markdown;
mod object;
mod svg;
mod text;
mod timeline;

pub use emit::{Emit, emit};
pub use fit::{FIT, FitReport, fit_json, fit_markdown, fit_text};
pub use json::{PLAN, json, yaml};
pub use lists::{CARDS, cards_text, choices_json, choices_text, engines_text, models_text};
pub use markdown::plan_markdown;
pub use svg::plan_svg;
pub use text::plan_text;

use crate::{Answer, Quantity, Verdict};
use dualplane_base::units::Bytes;

/// `15.27 GiB (15.21 to 15.33)`, or without the band where there is none.
fn amount(q: Quantity) -> String {
    if q.is_exact() { Bytes(q.expected).to_string() } else { format!("{} ({})", Bytes(q.expected), band(q)) }
}

/// `15.21 to 15.33 GiB`.
fn band(q: Quantity) -> String {
    format!("{} to {}", Bytes(q.low), Bytes(q.high))
}

/// Hundredths as the engine prints a concurrency.
fn times(hundredths: u64) -> String {
    format!("{}.{:02}x", hundredths / 100, hundredths % 100)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Refused => "refused",
        Verdict::Uncertain => "uncertain",
    }
}

/// `vLLM 0.33.0`, with what is assumed.
fn engine(a: &Answer) -> String {
    let l = &a.line.launch;
    match (l.engine, l.version_known) {
        (_, true) => format!("{} {}", l.engine, l.version),
        (crate::EngineKind::Vllm | crate::EngineKind::Sglang, false) => {
            format!("{} {} (assumed)", l.engine, l.version)
        }
        _ => l.engine.to_string(),
    }
}
