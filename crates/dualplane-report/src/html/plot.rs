//! The timeline as pictures below each other on one clock: where host RAM, VRAM and the KV cache stood, and when it ended.

use std::fmt::Write as _;

use dualplane_base::text::markup;
use dualplane_base::time::Stamp;
use dualplane_core::verdict::timeline::{Moment, Timeline};

use crate::pictures::{Clock, Drawn, PANELS, held};

/// Rows of the table.
const ROWS: usize = 24;

/// Seconds until the end, or until the last sample.
fn before(end: i64, at: i64) -> String {
    let (sign, ms) = if at > end { ("+", at - end) } else { ("−", end - at) };
    let s = ms as f64 / 1000.0;
    match s {
        0.0 => "0".to_owned(),
        s if s < 120.0 => format!("{sign}{s:.0} s"),
        s => format!("{sign}{:.1} min", s / 60.0),
    }
}

fn wall(ms: i64) -> String {
    Stamp::Wall { ms, zoned: true, year: true }.show()
}

/// A moment's class and its name.
fn named(moment: Moment) -> (&'static str, &'static str) {
    match moment {
        Moment::FirstError => ("first", "first error"),
        Moment::End => ("moment", "end"),
    }
}

/// All pictures, and the figures as a table for those who read rather than look; empty where no series was kept.
pub(super) fn pictures(timeline: &Timeline, out: &mut String) {
    let Some((from, to)) = timeline.span() else { return };
    let end = timeline.moments.iter().find(|(_, m)| *m == Moment::End).map_or(to, |(at, _)| *at);
    let clock = Clock { from, to, told: &|at| before(end, at) };
    out.push_str("<h2>Both planes up to the end</h2>");
    let _ = write!(out, "<p class=\"soft\">{} to {}", wall(from), wall(to));
    for (at, what) in &timeline.moments {
        let _ = write!(out, " · {} {}", named(*what).1, wall(*at));
    }
    out.push_str("</p>");
    let drawn: Vec<Drawn<'_>> = PANELS.iter().filter_map(|p| p.of(&timeline.lines, usize::MAX)).collect();
    for d in &drawn {
        let moments = timeline.moments.iter().map(|(at, what)| {
            let (class, name) = named(*what);
            (*at, class, name)
        });
        d.svg(&clock, moments, out);
    }
    table(&drawn, &clock, out);
}

fn table(drawn: &[Drawn<'_>], clock: &Clock<'_>, out: &mut String) {
    out.push_str("<details><summary>The figures</summary><div class=\"wide\"><table><tr><th>to the end</th>");
    let columns = || drawn.iter().flat_map(|d| d.lines.iter().map(|l| (l, d.panel.unit)));
    for ((_, label, _), _) in columns() {
        let _ = write!(out, "<th>{}</th>", markup(label));
    }
    out.push_str("</tr>");
    for i in 1..=ROWS {
        let at = clock.stretch(i, ROWS);
        let _ = write!(out, "<tr><td>{}</td>", (clock.told)(at));
        for ((line, ..), unit) in columns() {
            let shown = held(line, at).map_or_else(String::new, |v| unit.show(v));
            let _ = write!(out, "<td>{shown}</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div></details>\n");
}
