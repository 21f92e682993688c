//! The two curves as a picture.

use std::fmt::Write as _;

use dualplane_base::text::markup;

use super::Rehearsal;
use super::plot::clock;
use crate::answer::Rehearsed;
use crate::watch::Point;

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 24.0;
const HEIGHT: f64 = 150.0;
const POINTS: usize = 300;

/// Renders it: the launch, and below it each proposal, over the same height.
#[must_use]
pub fn svg(r: &Rehearsal) -> String {
    let mut body = String::new();
    let mut y = MARGIN + 18.0;
    let title = format!("{} on {}, {}", r.model, r.gpu, r.engine);
    label(&mut body, MARGIN, y, 18, "#ffffff", &title);
    y += 20.0;
    let load = format!("{} requests, {:.2} a second; {}", r.load.count, r.load.per_second, r.load.source);
    label(&mut body, MARGIN, y, 13, "#d8dee9", &load);
    let all = std::iter::once(&r.launch).chain(&r.proposals);
    for x in all {
        y = panel(&mut body, x, y + 34.0);
    }
    let height = y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" \
         font-family=\"ui-monospace, monospace\">\n<rect width=\"100%\" height=\"100%\" fill=\"#1b2330\"/>\n{body}</svg>\n"
    )
}

fn panel(out: &mut String, x: &Rehearsed, mut y: f64) -> f64 {
    let o = &x.outcome;
    let name =
        if x.flags.is_empty() { "as launched".to_owned() } else { format!("with {}", x.flags.join(" ")) };
    let head = format!(
        "{name}: at most {} of {} blocks, {} preemptions, queue of at most {}",
        o.peak_blocks, o.pool_blocks, o.preemptions, o.longest_queue
    );
    label(out, MARGIN, y, 14, "#ffffff", &head);
    y += 12.0;
    let points = o.curve.columns(POINTS);
    area(out, &points, |p| f64::from(p.blocks), f64::from(o.pool_blocks), y, HEIGHT, "#6d8fd6");
    label(out, MARGIN + 4.0, y + 14.0, 11, "#d8dee9", "KV cache: the whole height is the pool");
    let step = (WIDTH - 2.0 * MARGIN) / points.len().max(1) as f64;
    for (i, _) in points.iter().enumerate().filter(|(_, p)| p.preempted > 0) {
        let at = MARGIN + step * (i as f64 + 0.5);
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" y1=\"{y:.0}\" x2=\"{at:.1}\" y2=\"{:.0}\" stroke=\"#ff6b6b\"/>",
            y + 8.0
        );
    }
    y += HEIGHT + 6.0;
    let low = HEIGHT / 2.0;
    area(out, &points, |p| f64::from(p.waiting), f64::from(o.longest_queue), y, low, "#ffd166");
    label(
        out,
        MARGIN + 4.0,
        y + 14.0,
        11,
        "#d8dee9",
        &format!("requests that wait: the whole height is {}", o.longest_queue),
    );
    y += low + 16.0;
    label(out, MARGIN, y, 11, "#d8dee9", "0");
    let end = clock(o.curve.seconds * o.curve.points.len() as f64);
    label(out, WIDTH - MARGIN - 7.0 * end.len() as f64, y, 11, "#d8dee9", &end);
    y
}

fn area(
    out: &mut String,
    points: &[Point],
    of: impl Fn(&Point) -> f64,
    most: f64,
    y: f64,
    height: f64,
    colour: &str,
) {
    let step = (WIDTH - 2.0 * MARGIN) / points.len().max(1) as f64;
    let base = y + height;
    let _ = writeln!(
        out,
        "<rect x=\"{MARGIN}\" y=\"{y:.0}\" width=\"{:.0}\" height=\"{height:.0}\" fill=\"#232d3d\"/>",
        WIDTH - 2.0 * MARGIN
    );
    let mut path = format!("M{MARGIN} {base:.1}");
    for (i, p) in points.iter().enumerate() {
        let top = base - (of(p) / most.max(1.0)).clamp(0.0, 1.0) * height;
        let (a, b) = (MARGIN + step * i as f64, MARGIN + step * (i + 1) as f64);
        let _ = write!(path, "L{a:.1} {top:.1}L{b:.1} {top:.1}");
    }
    let _ = writeln!(out, "<path d=\"{path}L{:.1} {base:.1}Z\" fill=\"{colour}\"/>", WIDTH - MARGIN);
}

fn label(out: &mut String, x: f64, y: f64, size: u32, colour: &str, text: &str) {
    let safe = markup(text);
    let _ =
        writeln!(out, "<text x=\"{x:.0}\" y=\"{y:.0}\" font-size=\"{size}\" fill=\"{colour}\">{safe}</text>");
}
