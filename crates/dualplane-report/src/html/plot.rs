//! The timeline as pictures below each other on one clock: where host RAM, VRAM and the KV cache stood, and when it ended.

use std::fmt::Write as _;

use dualplane_base::plot::{Frame, Key, Unit};
use dualplane_base::text::markup;
use dualplane_base::time::Stamp;
use dualplane_core::verdict::timeline::{Line, Measure, Moment, Timeline};

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
    /// The end of a stretch.
    fn moment(&self, i: usize, of: usize) -> i64 {
        let part = (i as f64 + 1.0) / of as f64;
        self.from + ((self.to - self.from) as f64 * part) as i64
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

fn wall(ms: i64) -> String {
    Stamp::Wall { ms, zoned: true, year: true }.show()
}

/// All pictures, and the figures as a table for those who read rather than look; empty where no series was kept.
pub(super) fn pictures(timeline: &Timeline, out: &mut String) {
    let Some((from, to)) = timeline.span() else { return };
    let clock = Clock { from, to, moments: &timeline.moments };
    out.push_str("<h2>Both planes up to the end</h2>");
    let _ = write!(out, "<p class=\"soft\">{} to {}", wall(from), wall(to));
    for (at, what) in &timeline.moments {
        let what = match what {
            Moment::FirstError => "first error",
            Moment::End => "end",
        };
        let _ = write!(out, " · {what} {}", wall(*at));
    }
    out.push_str("</p>");
    for picture in PICTURES {
        draw(timeline, &clock, picture, out);
    }
    table(timeline, &clock, out);
}

fn of(timeline: &Timeline, measure: Measure) -> impl Iterator<Item = &Line> {
    timeline.lines.iter().filter(move |l| l.measure == measure)
}

fn most(line: &Line) -> f64 {
    line.points.iter().map(|(_, v)| *v).fold(0.0, f64::max)
}

/// What a line is, by its card where it has one.
fn named(line: &Line, label: &str) -> String {
    line.card.as_ref().map_or_else(|| label.to_owned(), |c| format!("card {c}, {label}"))
}

fn draw(timeline: &Timeline, clock: &Clock<'_>, picture: &Picture, out: &mut String) {
    let lines: Vec<(&Line, &str, &'static str)> = picture
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
    let unit = picture.unit;
    let frame = Frame::new((clock.from as f64, clock.to as f64), unit, highest, limit);
    frame.open(picture.title, |at| clock.before(at as i64), out);
    for (line, _, colour) in &lines {
        frame.line(line.points.iter().map(|(at, v)| (*at as f64, Some(*v))), colour, out);
    }
    frame.limit(out);
    for (at, what) in clock.moments {
        let (class, word) = match what {
            Moment::FirstError => ("first", "first error"),
            Moment::End => ("moment", "end"),
        };
        frame.moment(*at as f64, class, word, out);
    }
    let mut from = clock.from;
    for i in 0..LOOKS {
        let at = clock.moment(i, LOOKS);
        let said: Vec<String> = lines
            .iter()
            .filter_map(|(l, label, _)| Some(format!("{} {}", named(l, label), unit.show(held(l, at)?))))
            .collect();
        if !said.is_empty() {
            let words = format!("{}: {}", clock.before(at), said.join("; "));
            frame.told((from as f64, at as f64), &words, out);
        }
        from = at;
    }
    let keys = lines.iter().map(|(line, label, colour)| Key {
        colour,
        label: format!("{}, most {}", named(line, label), unit.show(most(line))),
    });
    let word = if picture.limit == Some(Measure::VramTotal) { "the card has" } else { "limit" };
    frame.close(keys, limit.map(|l| format!("{word} {}", unit.show(l))), out);
}

/// The last value until a moment: a value that does not change is stored rarely.
fn held(line: &Line, at: i64) -> Option<f64> {
    let behind = line.points.partition_point(|(t, _)| *t <= at);
    line.points.get(behind.checked_sub(1)?).map(|(_, v)| *v)
}

fn table(timeline: &Timeline, clock: &Clock<'_>, out: &mut String) {
    out.push_str("<details><summary>The figures</summary><div class=\"wide\"><table><tr><th>to the end</th>");
    let columns: Vec<(&Line, String, Unit)> = PICTURES
        .iter()
        .flat_map(|p| p.lines.iter().map(move |(m, label, _)| (p, *m, *label)))
        .flat_map(|(p, m, label)| of(timeline, m).map(move |l| (l, named(l, label), p.unit)))
        .collect();
    for (_, label, _) in &columns {
        let _ = write!(out, "<th>{}</th>", markup(label));
    }
    out.push_str("</tr>");
    for i in 0..ROWS {
        let at = clock.moment(i, ROWS);
        let _ = write!(out, "<tr><td>{}</td>", clock.before(at));
        for (line, _, unit) in &columns {
            let shown = held(line, at).map_or_else(String::new, |v| unit.show(v));
            let _ = write!(out, "<td>{shown}</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div></details>\n");
}
