//! Lines over time: one picture for each measure, all on one clock.

use dualplane_base::plot::{Frame, Key, Unit};
use dualplane_gate::document::{Line, Series};

/// Points of a line that are drawn: more than the picture has pixels are not seen.
const MAX_POINTS: usize = 900;

/// A picture: its title, the lines in it with their colours, and the line that is a limit.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    pub(super) lines: &'a [(&'a str, &'a str, &'static str)],
    pub(super) limit: Option<&'a str>,
}

/// The picture; none where none of its lines was read.
pub(super) fn draw(series: &Series, plot: &Plot<'_>, out: &mut String) {
    let find = |name: &str| series.lines.iter().find(|l| l.name == name);
    let lines: Vec<(&Line, &str, &'static str)> =
        plot.lines.iter().filter_map(|(name, label, colour)| Some((find(name)?, *label, *colour))).collect();
    let (Some((first, ..)), Some(from), Some(to)) =
        (lines.first(), series.seconds.first(), series.seconds.last())
    else {
        return;
    };
    let unit = match first.unit.as_str() {
        "bytes" => Unit::Bytes,
        "share" => Unit::Share,
        _ => Unit::Count,
    };
    let most = |l: &Line| l.values.iter().flatten().copied().fold(0.0, f64::max);
    let limit = plot.limit.and_then(find).and_then(|l| l.values.iter().flatten().copied().reduce(f64::max));
    let highest = lines.iter().map(|(l, ..)| most(l)).fold(0.0, f64::max);
    let frame = Frame::new((*from, *to), unit, highest, limit);
    frame.open(plot.title, |t| clock(t, to - from), out);
    for (line, _, colour) in &lines {
        frame.line(thinned(&series.seconds, &line.values), colour, out);
    }
    frame.limit(out);
    let keys = lines.iter().map(|(line, label, colour)| Key {
        colour,
        label: format!("{label} (most {})", unit.show(most(line))),
    });
    frame.close(keys, limit.map(|l| format!("limit {}", unit.show(l))), out);
}

/// The highest of each stretch.
fn thinned(seconds: &[f64], values: &[Option<f64>]) -> impl Iterator<Item = (f64, Option<f64>)> {
    let each = seconds.len().div_ceil(MAX_POINTS).max(1);
    let stretches = seconds.chunks(each).zip(values.chunks(each));
    stretches.filter_map(|(t, v)| Some((*t.first()?, v.iter().flatten().copied().reduce(f64::max))))
}

fn clock(t: f64, span: f64) -> String {
    match span {
        // Six marks of a shorter run would say the same second twice.
        s if s < 12.0 => format!("{t:.1} s"),
        s if s < 180.0 => format!("{t:.0} s"),
        s if s < 7_200.0 => format!("{:.1} min", t / 60.0),
        _ => format!("{:.1} h", t / 3600.0),
    }
}
