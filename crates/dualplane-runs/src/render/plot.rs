//! Lines over time as SVG: one picture for each measure, all on one clock.

use std::fmt::Write as _;

use dualplane_base::text::markup;
use dualplane_base::units::Bytes;
use dualplane_gate::document::{Line, Series};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// Points of a line that are drawn: more than the picture has pixels are not seen.
const MAX_POINTS: usize = 900;

/// A picture: its title, the lines in it with their colours, and the line that is a limit.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    pub(super) lines: &'a [(&'a str, &'a str, &'a str)],
    pub(super) limit: Option<&'a str>,
}

/// The picture; none where none of its lines was read.
pub(super) fn draw(series: &Series, plot: &Plot<'_>) -> Option<String> {
    let find = |name: &str| series.lines.iter().find(|l| l.name == name);
    let lines: Vec<(&Line, &str, &str)> =
        plot.lines.iter().filter_map(|(name, label, colour)| Some((find(name)?, *label, *colour))).collect();
    let unit = lines.first()?.0.unit.as_str();
    let limit = plot.limit.and_then(find).and_then(|l| l.values.iter().flatten().copied().reduce(f64::max));
    let (from, to) = (*series.seconds.first()?, *series.seconds.last()?);
    let span = (to - from).max(1e-9);
    let most = lines.iter().flat_map(|(l, ..)| l.values.iter().flatten().copied()).fold(0.0, f64::max);
    // A limit far above everything would press the lines flat: it is told beside them then.
    let shown = limit.filter(|l| *l <= most * 4.0);
    let top = nice(most.max(shown.unwrap_or(0.0)).max(if unit == "share" { 0.05 } else { 1e-9 }), unit);
    let x = |t: f64| LEFT + (t - from) / span * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| TOP + (1.0 - (v / top).clamp(0.0, 1.0)) * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        markup(plot.title),
        markup(plot.title)
    );
    for i in 0..=4 {
        let v = top * f64::from(i) / 4.0;
        let at = y(v);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"y\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            value(v, unit)
        );
    }
    for i in 0..=6 {
        let t = from + span * f64::from(i) / 6.0;
        let anchor = if i == 6 { "end" } else { "middle" };
        let _ = write!(
            out,
            "<text class=\"x\" style=\"text-anchor:{anchor}\" x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            x(t),
            HEIGHT - 8.0,
            clock(t, span)
        );
    }
    for (line, _, colour) in &lines {
        for path in paths(&series.seconds, &line.values, &x, &y) {
            let _ = write!(out, "<path d=\"{path}\" stroke=\"var(--{colour})\"/>");
        }
    }
    if let Some(limit) = shown {
        let at = y(limit);
        let _ = write!(
            out,
            "<line class=\"limit\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>",
            WIDTH - RIGHT
        );
    }
    out += "</svg><p class=\"legend\">";
    for (line, label, colour) in &lines {
        let last = line.values.iter().flatten().copied().fold(0.0, f64::max);
        let _ = write!(
            out,
            "<span><i style=\"background:var(--{colour})\"></i>{} (most {})</span>",
            markup(label),
            value(last, unit)
        );
    }
    if let Some(limit) = limit {
        let _ = write!(out, "<span><i class=\"limit\"></i>limit {}</span>", value(limit, unit));
    }
    out += "</p></figure>";
    Some(out)
}

/// The line in pieces, as moments that were not read leave gaps.
fn paths(
    seconds: &[f64],
    values: &[Option<f64>],
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
) -> Vec<String> {
    let each = seconds.len().div_ceil(MAX_POINTS).max(1);
    let mut all = Vec::new();
    let mut path = String::new();
    for (times, values) in seconds.chunks(each).zip(values.chunks(each)) {
        let most = values.iter().flatten().copied().reduce(f64::max);
        match (times.first(), most) {
            (Some(t), Some(v)) => {
                let letter = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{letter}{:.1} {:.1}", x(*t), y(v));
            }
            _ if !path.is_empty() => all.push(std::mem::take(&mut path)),
            _ => {}
        }
    }
    if !path.is_empty() {
        all.push(path);
    }
    // A point alone would not be seen.
    all.iter_mut().filter(|p| !p.contains('L')).for_each(|p| p.push_str("h1.5"));
    all
}

/// The next round number above.
fn nice(most: f64, unit: &str) -> f64 {
    if unit == "share" {
        return if most > 0.5 { 1.0 } else { (most * 1.1 * 20.0).ceil() / 20.0 };
    }
    let base = if unit == "bytes" { 2_f64.powf((most.log2() / 10.0).floor() * 10.0) } else { 1.0 };
    let scaled = most / base;
    let ten = 10_f64.powf(scaled.log10().floor());
    let step = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0]
        .into_iter()
        .find(|s| s * ten >= scaled * 1.02)
        .unwrap_or(10.0);
    step * ten * base
}

fn value(v: f64, unit: &str) -> String {
    match unit {
        "bytes" => Bytes::from_f64(v).to_string(),
        "share" => format!("{:.0} %", v * 100.0),
        _ if v >= 10.0 || v.fract() == 0.0 => format!("{v:.0}"),
        _ => format!("{v:.1}"),
    }
}

fn clock(t: f64, span: f64) -> String {
    match span {
        s if s < 180.0 => format!("{t:.0} s"),
        s if s < 7_200.0 => format!("{:.1} min", t / 60.0),
        _ => format!("{:.1} h", t / 3600.0),
    }
}
