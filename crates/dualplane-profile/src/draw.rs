//! A shape as text: its two histograms, and what else it says.

use dualplane_base::style::Style;
use dualplane_base::text::{counted, printable};
use dualplane_base::units::thousands;
use dualplane_base::writer::Writer;
use dualplane_shape::{Cell, Shape, quantile};

/// Eighths of a block.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Draws a shape, and remarks on it.
#[must_use]
pub fn draw(shape: &Shape, notes: &[String], style: Style) -> String {
    let mut w = Writer::new(style);
    let cells = shape.cells().unwrap_or_default();
    let counted_words = shape.counted.map_or_else(String::new, |n| format!("  {} requests", thousands(n)));
    let span = shape.span_seconds.map_or_else(String::new, |s| format!(" in {}", time(s)));
    w.line(&format!("{}{counted_words}{span}", style.bold(&printable(&shape.name))));
    w.wrapped(&printable(&shape.source), "  ", "  ");
    histogram(&mut w, "Prompts", &cells, |c| c.input, style);
    histogram(&mut w, "Answers", &cells, |c| c.output, style);
    w.heading("Load");
    load(&mut w, shape);
    for note in notes {
        w.wrapped(&printable(note), "  ! ", "    ");
    }
    w.out
}

fn load(w: &mut Writer, shape: &Shape) {
    let mut row = |name: &str, value: String| w.line(&format!("  {name:<16}{value}"));
    let peak = |p: Option<String>| p.map_or_else(String::new, |p| format!(", at most {p}"));
    if let Some(rate) = shape.arrival_per_second {
        let most = shape.arrival.as_ref().and_then(|a| a.peak_per_second).map(|p| format!("{p} in a second"));
        row("arrivals", format!("{rate} a second{}", peak(most)));
    }
    if let Some(a) = &shape.arrival {
        let words = match a.cv {
            cv if cv < 0.7 => "more even than chance",
            cv if cv <= 1.3 => "by chance",
            _ => "in bursts",
        };
        row("spread", format!("{} (variation {}; 1 is chance)", words, a.cv));
        if !a.rates.is_empty() {
            row("over time", format!("{}  {} each", spark(&a.rates), time(a.slice_seconds.unwrap_or(1.0))));
        }
    }
    if let Some(n) = shape.concurrency {
        row("at once", format!("{n}{}", peak(shape.concurrency_peak.map(|p| p.to_string()))));
    }
    if let Some(s) = shape.seconds {
        row("a request takes", format!("{} on average", time(s)));
    }
    if let Some(l) = shape.long {
        let (share, tokens) = (percent(l.share), percent(l.tokens_share));
        row(
            "long context",
            format!("{share} of requests above {} tokens; {tokens} of all tokens", thousands(l.above)),
        );
    }
    row("shared prefix", format!("{} of the prompts' tokens", percent(shape.prefix_share)));
    if let Some(c) = shape.cancelled {
        row("cancelled", format!("{}, after {} of the answer", percent(c.share), percent(c.after)));
    }
    if !shape.tenants.is_empty() {
        let first: Vec<String> = shape.tenants.iter().take(4).map(|t| percent(t.share)).collect();
        let more = if shape.tenants.len() > 4 { ", …" } else { "" };
        row(
            "tenants",
            format!("{}: {}{more}", counted(shape.tenants.len() as u64, "tenant"), first.join(", ")),
        );
    }
}

fn histogram(w: &mut Writer, name: &str, cells: &[Cell], of: fn(&Cell) -> f64, style: Style) {
    let at = |share| thousands(quantile(cells, of, share));
    w.heading(&format!(
        "{name}  tokens: p50 {}, p90 {}, p99 {}, longest {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    ));
    // Powers of two: as many rows as doublings, from the shortest to the longest.
    let slot = |tokens: f64| if tokens < 1.0 { 0 } else { tokens.log2().floor() as usize + 1 };
    let mut rows = vec![0.0_f64; 64];
    for c in cells {
        if let Some(row) = rows.get_mut(slot(of(c)).min(63)) {
            *row += c.share;
        }
    }
    let first = rows.iter().position(|r| *r > 0.0).unwrap_or(0);
    let last = rows.iter().rposition(|r| *r > 0.0).unwrap_or(0);
    let most = rows.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let width = style.width.saturating_sub(38).clamp(10, 50);
    for (i, share) in rows.iter().enumerate().take(last + 1).skip(first) {
        let (low, high) = if i == 0 { (0, 0) } else { (1_u64 << (i - 1), (1_u64 << i) - 1) };
        let range =
            if low == high { thousands(low) } else { format!("{} to {}", thousands(low), thousands(high)) };
        let line = format!("  {range:>23} {:>7} {}", percent(*share), bar(share / most, width));
        w.line(line.trim_end());
    }
}

fn bar(share: f64, width: usize) -> String {
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    if let Some(c) = (eighths % 8).checked_sub(1).and_then(|i| EIGHTHS.get(i)) {
        out.push(*c);
    }
    // What is there is seen.
    if out.is_empty() && share > 0.0 { "▏".into() } else { out }
}

fn spark(rates: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let each = rates.len().div_ceil(48);
    rates
        .chunks(each)
        .filter_map(|c| BARS.get(((c.iter().sum::<f64>() / c.len() as f64 / most) * 7.0).round() as usize))
        .collect()
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        p if p < 0.1 => "< 0.1 %".into(),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1000.0),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}
