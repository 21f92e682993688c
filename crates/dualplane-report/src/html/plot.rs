//! The timeline as pictures below each other on one clock: where host RAM, VRAM and the KV cache stood, and when it ended.

use std::fmt::Write as _;

use dualplane_base::text::markup as escape;
use dualplane_base::time::Stamp;
use dualplane_base::units::{Bytes, round_above};
use dualplane_core::verdict::timeline::{Line, Measure, Moment, Timeline};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 22.0;
/// Stretches of time that tell their values under the pointer, and rows of the table.
const LOOKS: usize = 60;
const ROWS: usize = 24;

/// A picture and what is drawn in it.
struct Picture {
    title: &'static str,
    unit: Unit,
    lines: &'static [(Measure, &'static str, &'static str)],
    limit: Option<Measure>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Share,
    Count,
}

const PICTURES: &[Picture] = &[
    Picture {
        title: "Host RAM of the container",
        unit: Unit::Bytes,
        lines: &[
            (Measure::WorkingSet, "working set", "working"),
            (Measure::Anonymous, "anonymous", "anon"),
            (Measure::Shared, "shared and pinned", "shared"),
        ],
        limit: Some(Measure::HostLimit),
    },
    Picture {
        title: "VRAM",
        unit: Unit::Bytes,
        lines: &[(Measure::Vram, "in use", "gpu")],
        limit: Some(Measure::VramTotal),
    },
    Picture { title: "KV cache", unit: Unit::Share, lines: &[(Measure::KvCache, "used", "kv")], limit: None },
    Picture {
        title: "Requests",
        unit: Unit::Count,
        lines: &[(Measure::Running, "running", "run"), (Measure::Waiting, "waiting", "wait")],
        limit: None,
    },
];

/// The clock that all pictures share.
struct Clock<'a> {
    from: i64,
    to: i64,
    moments: &'a [(i64, Moment)],
}

impl Clock<'_> {
    fn x(&self, at: i64) -> f64 {
        let part = (at - self.from) as f64 / (self.to - self.from).max(1) as f64;
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    /// Seconds until the end, or until the last sample.
    fn before(&self, at: i64) -> String {
        let end = self.moments.iter().find(|(_, m)| *m == Moment::End).map_or(self.to, |(at, _)| *at);
        let (sign, ms) = if at > end { ("+", at - end) } else { ("−", end - at) };
        let s = ms as f64 / 1000.0;
        match s {
            0.0 => "0".to_owned(),
            s if s < 120.0 => format!("{sign}{s:.0} s"),
            s => format!("{sign}{:.1} min", s / 60.0),
        }
    }
}

fn clock(ms: i64) -> String {
    Stamp::Wall { ms, zoned: true, year: true }.show()
}

/// All pictures, and the figures as a table for those who read rather than look; empty where no series was kept.
pub(super) fn pictures(timeline: &Timeline, out: &mut String) {
    let Some((from, to)) = timeline.span() else { return };
    let clock_of = Clock { from, to, moments: &timeline.moments };
    out.push_str("<h2>Both planes up to the end</h2>");
    let _ = write!(out, "<p class=\"soft\">{} to {}", clock(from), clock(to));
    for (at, what) in &timeline.moments {
        let what = match what {
            Moment::FirstError => "first error",
            Moment::End => "end",
        };
        let _ = write!(out, " · {what} {}", clock(*at));
    }
    out.push_str("</p>");
    for picture in PICTURES {
        draw(timeline, &clock_of, picture, out);
    }
    table(timeline, &clock_of, out);
}

fn of(timeline: &Timeline, measure: Measure) -> impl Iterator<Item = &Line> {
    timeline.lines.iter().filter(move |l| l.measure == measure)
}

fn most(line: &Line) -> f64 {
    line.points.iter().map(|(_, v)| *v).fold(0.0, f64::max)
}

fn draw(timeline: &Timeline, clock_of: &Clock<'_>, picture: &Picture, out: &mut String) {
    let lines: Vec<(&Line, &str, &str)> = picture
        .lines
        .iter()
        .flat_map(|(m, label, colour)| of(timeline, *m).map(move |l| (l, *label, *colour)))
        .collect();
    if lines.is_empty() {
        return;
    }
    // Cards of one pod are of one kind; where they are not, the smallest fills first.
    let limit = picture.limit.and_then(|m| of(timeline, m).map(most).reduce(f64::min));
    let highest = lines.iter().map(|(l, ..)| most(l)).fold(0.0, f64::max);
    // A limit far above everything would press the lines flat: it is told beside them then.
    let shown = limit.filter(|l| *l <= highest * 4.0);
    let top = match picture.unit {
        Unit::Share => 1.0,
        unit => round_above(highest.max(shown.unwrap_or(0.0)).max(1.0), unit == Unit::Bytes),
    };
    let y = |v: f64| TOP + (1.0 - (v / top).clamp(0.0, 1.0)) * (HEIGHT - TOP - BOTTOM);
    let title = escape(picture.title);
    let _ = write!(
        out,
        "<figure><figcaption>{title}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">"
    );
    let right = WIDTH - RIGHT;
    for i in 0..=4 {
        let v = top * f64::from(i) / 4.0;
        let at = y(v);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"y\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            value(v, picture.unit)
        );
    }
    for i in 0..=6 {
        let at = clock_of.from + (clock_of.to - clock_of.from) / 6 * i;
        let class = if i == 6 { "left" } else { "x" };
        let _ = write!(
            out,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            clock_of.x(at),
            HEIGHT - 6.0,
            clock_of.before(at)
        );
    }
    for (line, _, colour) in &lines {
        // A point alone would not be seen as a line.
        if let [(at, v)] = line.points.as_slice() {
            let (x, y) = (clock_of.x(*at), y(*v));
            let _ = write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"var(--{colour})\"/>");
        }
        let _ = write!(out, "<path d=\"{}\" stroke=\"var(--{colour})\"/>", path(line, clock_of, &y));
    }
    if let Some(limit) = shown {
        let at = y(limit);
        let _ = write!(
            out,
            "<line class=\"limit\" x1=\"{LEFT}\" x2=\"{right:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"
        );
    }
    for (at, what) in clock_of.moments {
        let (class, word) = match what {
            Moment::FirstError => ("first", "first error"),
            Moment::End => ("moment", "end"),
        };
        let x = clock_of.x(*at).min(right);
        let _ = write!(
            out,
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.0}\"/><text class=\"left\" x=\"{x:.1}\" y=\"{:.0}\">{word}</text>",
            HEIGHT - BOTTOM,
            TOP - 5.0
        );
    }
    looks(&lines, clock_of, picture.unit, out);
    out.push_str("</svg><p class=\"legend\">");
    for (line, label, colour) in &lines {
        let card = line.card.as_ref().map_or_else(String::new, |c| format!("card {c}, "));
        let _ = write!(
            out,
            "<span><i style=\"--c:var(--{colour})\"></i>{}{label}, most {}</span>",
            escape(&card),
            value(most(line), picture.unit)
        );
    }
    if let Some(limit) = limit {
        let word = if picture.limit == Some(Measure::VramTotal) { "the card has" } else { "limit" };
        let _ = write!(out, "<span><i class=\"dash\"></i>{word} {}</span>", value(limit, picture.unit));
    }
    out.push_str("</p></figure>\n");
}

fn path(line: &Line, clock_of: &Clock<'_>, y: &impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (at, v) in &line.points {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{:.1} {:.1}", clock_of.x(*at), y(*v));
    }
    path
}

/// Bands that tell their values where the pointer rests; the browser does it, nothing runs.
fn looks(lines: &[(&Line, &str, &str)], clock_of: &Clock<'_>, unit: Unit, out: &mut String) {
    let width = (WIDTH - LEFT - RIGHT) / LOOKS as f64;
    for i in 0..LOOKS {
        let at = moment(clock_of, i, LOOKS);
        let said: Vec<String> = lines
            .iter()
            .filter_map(|(l, label, _)| {
                let card = l.card.as_ref().map_or_else(String::new, |c| format!("card {c} "));
                Some(format!("{card}{label} {}", value(held(l, at)?, unit)))
            })
            .collect();
        if said.is_empty() {
            continue;
        }
        let _ = write!(
            out,
            "<rect class=\"look\" x=\"{:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{:.0}\"><title>{}</title></rect>",
            LEFT + width * i as f64,
            HEIGHT - TOP - BOTTOM,
            escape(&format!("{}: {}", clock_of.before(at), said.join(", ")))
        );
    }
}

/// The end of a stretch of the clock.
fn moment(clock_of: &Clock<'_>, i: usize, of: usize) -> i64 {
    let part = (i as f64 + 1.0) / of as f64;
    clock_of.from + ((clock_of.to - clock_of.from) as f64 * part) as i64
}

/// The last value until a moment: a value that does not change is stored rarely.
fn held(line: &Line, at: i64) -> Option<f64> {
    let behind = line.points.partition_point(|(t, _)| *t <= at);
    line.points.get(behind.checked_sub(1)?).map(|(_, v)| *v)
}

fn table(timeline: &Timeline, clock_of: &Clock<'_>, out: &mut String) {
    out.push_str("<details><summary>The figures</summary><div class=\"wide\"><table><tr><th>to the end</th>");
    let columns: Vec<(&Line, String, Unit)> = PICTURES
        .iter()
        .flat_map(|p| p.lines.iter().map(move |(m, label, _)| (p, *m, *label)))
        .flat_map(|(p, m, label)| {
            of(timeline, m).map(move |l| {
                let card = l.card.as_ref().map_or_else(String::new, |c| format!("card {c}, "));
                (l, format!("{card}{label}"), p.unit)
            })
        })
        .collect();
    for (_, label, _) in &columns {
        let _ = write!(out, "<th>{}</th>", escape(label));
    }
    out.push_str("</tr>");
    for i in 0..ROWS {
        let at = moment(clock_of, i, ROWS);
        let _ = write!(out, "<tr><td>{}</td>", clock_of.before(at));
        for (line, _, unit) in &columns {
            let shown = held(line, at).map_or_else(String::new, |v| value(v, *unit));
            let _ = write!(out, "<td>{shown}</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div></details>\n");
}

fn value(v: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => Bytes::from_f64(v).to_string(),
        Unit::Share => format!("{:.0} %", v * 100.0),
        Unit::Count => format!("{v:.0}"),
    }
}
