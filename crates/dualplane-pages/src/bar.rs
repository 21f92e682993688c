//! Bars against a limit, as a picture that needs no style of its own and no script.

use dualplane_base::units::Bytes;
use maud::{Markup, html};

/// A bar.
pub(crate) struct Bar {
    /// What it is of.
    pub(crate) label: &'static str,
    /// Bytes.
    pub(crate) value: u64,
    /// The class of its colour.
    pub(crate) class: &'static str,
}

const WIDTH: f64 = 600.0;
const ROW: f64 = 30.0;
const LEFT: f64 = 2.0;

/// One below the other, on one scale; the limit is a line through all of them.
pub(crate) fn bars(title: &str, rows: &[Bar], limit: Option<u64>) -> Markup {
    let most = rows.iter().map(|r| r.value).chain(limit).max().unwrap_or(1).max(1) as f64;
    // Room for the word at the limit's line, where that is the longest.
    let x = |v: u64| LEFT + v as f64 / (most * 1.04) * (WIDTH - 2.0 * LEFT);
    let height = ROW * rows.len() as f64 + 18.0;
    let told: Vec<String> = rows
        .iter()
        .map(|r| format!("{} {}", r.label, Bytes(r.value)))
        .chain(limit.map(|l| format!("limit {}", Bytes(l))))
        .collect();
    let told = format!("{title}: {}", told.join(", "));
    html! {
        svg.bars viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(told) {
            @for (i, r) in rows.iter().enumerate() {
                @let y = ROW * i as f64;
                text x=(LEFT) y={ (y + 12.0) } { (r.label) " " (Bytes(r.value)) }
                rect class=(r.class) x=(LEFT) y={ (y + 16.0) } width={ (format!("{:.1}", (x(r.value) - LEFT).max(1.0))) } height="10" rx="2" {}
            }
            @if let Some(l) = limit {
                line.limit x1={ (format!("{:.1}", x(l))) } x2={ (format!("{:.1}", x(l))) } y1="14" y2={ (ROW * rows.len() as f64) } {}
                text.end x={ (format!("{:.1}", x(l).max(70.0))) } y={ (height - 4.0) } { "limit " (Bytes(l)) }
            }
        }
    }
}
