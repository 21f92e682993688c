//! Both planes on one clock as pictures below each other: which lines stand in which picture, and how one is drawn. The page
//! of `triage -o html` and those of the server show the same.

use dualplane_base::plot::{Frame, Key, Unit};
use dualplane_core::verdict::timeline::{Line, Measure};

/// Stretches of time that tell their values under the pointer.
const LOOKS: usize = 60;

/// A picture and what stands in it.
#[derive(Debug)]
pub struct Panel {
    /// Its title.
    pub title: &'static str,
    /// What its height counts.
    pub unit: Unit,
    /// Its lines, each with its label and its colour.
    lines: &'static [(Measure, &'static str, &'static str)],
    /// Its limit, and the word for it.
    pub limit: Option<(Measure, &'static str)>,
}

/// All pictures, in the order of a page.
pub const PANELS: &[Panel] = &[
    Panel {
        title: "Host RAM of the container",
        unit: Unit::Bytes,
        lines: &[
            (Measure::WorkingSet, "working set", "working"),
            (Measure::Anonymous, "anonymous", "anon"),
            (Measure::Shared, "shared and pinned", "shared"),
        ],
        limit: Some((Measure::HostLimit, "limit")),
    },
    Panel {
        title: "VRAM",
        unit: Unit::Bytes,
        lines: &[(Measure::Vram, "in use", "gpu")],
        limit: Some((Measure::VramTotal, "the card has")),
    },
    Panel { title: "KV cache", unit: Unit::Share, lines: &[(Measure::KvCache, "used", "kv")], limit: None },
    Panel {
        title: "Requests",
        unit: Unit::Count,
        lines: &[(Measure::Running, "running", "run"), (Measure::Waiting, "waiting", "wait")],
        limit: None,
    },
];

/// A panel with what is drawn in it.
#[derive(Debug)]
pub struct Drawn<'a> {
    /// The panel.
    pub panel: &'static Panel,
    /// Its lines, each with its label (by its card where it has one) and its colour.
    pub lines: Vec<(&'a Line, String, &'static str)>,
    /// Its limit.
    pub limit: Option<f64>,
}

/// The clock that all pictures share.
pub struct Clock<'a> {
    /// First moment, in milliseconds since 1970.
    pub from: i64,
    /// Last moment.
    pub to: i64,
    /// How a moment is said.
    pub told: &'a dyn Fn(i64) -> String,
}

impl Clock<'_> {
    /// Where the first `i` of so many equal stretches end.
    #[must_use]
    pub fn stretch(&self, i: usize, of: usize) -> i64 {
        let span = self.to.saturating_sub(self.from) as f64;
        self.from.saturating_add((span * i as f64 / of as f64) as i64)
    }
}

impl Panel {
    /// What of these lines stands in it, of at most so many cards; none where nothing does.
    #[must_use]
    pub fn of<'a>(&'static self, all: &'a [Line], cards: usize) -> Option<Drawn<'a>> {
        let of = |m: Measure| all.iter().filter(move |l| l.measure == m);
        let mut lines = Vec::new();
        for (measure, label, colour) in self.lines {
            lines.extend(of(*measure).take(cards).map(|l| {
                let card = l.card.as_ref();
                (l, card.map_or_else(|| (*label).to_owned(), |c| format!("card {c}, {label}")), *colour)
            }));
        }
        if lines.is_empty() {
            return None;
        }
        // Cards of one pod are of one kind; where they are not, the smallest fills first.
        let limit = self.limit.and_then(|(m, _)| of(m).map(most).reduce(f64::min)).filter(|l| *l > 0.0);
        Some(Drawn { panel: self, lines, limit })
    }
}

impl Drawn<'_> {
    /// The picture, with moments as (milliseconds, class, name).
    pub fn svg<'m>(
        &self,
        clock: &Clock<'_>,
        moments: impl Iterator<Item = (i64, &'m str, &'m str)>,
        out: &mut String,
    ) {
        let unit = self.panel.unit;
        let highest = self.lines.iter().map(|(l, ..)| most(l)).fold(0.0, f64::max);
        let frame = Frame::new((clock.from as f64, clock.to as f64), unit, highest, self.limit);
        frame.open(self.panel.title, |at| (clock.told)(at as i64), out);
        for (line, _, colour) in &self.lines {
            frame.line(line.points.iter().map(|(at, v)| (*at as f64, Some(*v))), colour, out);
        }
        frame.limit(out);
        for (at, class, name) in moments {
            frame.moment(at as f64, class, name, out);
        }
        for i in 0..LOOKS {
            let (from, to) = (clock.stretch(i, LOOKS), clock.stretch(i + 1, LOOKS));
            let said: Vec<String> = self
                .lines
                .iter()
                .filter_map(|(l, label, _)| Some(format!("{label} {}", unit.show(held(l, to)?))))
                .collect();
            if !said.is_empty() {
                let words = format!("{}: {}", (clock.told)(to), said.join("; "));
                frame.told((from as f64, to as f64), &words, out);
            }
        }
        let keys = self
            .lines
            .iter()
            .map(|(l, label, colour)| Key { colour, label: format!("{label}, most {}", unit.show(most(l))) });
        let limit = self.limit.zip(self.panel.limit).map(|(l, (_, word))| format!("{word} {}", unit.show(l)));
        frame.close(keys, limit, out);
    }
}

/// The most that a line reached.
fn most(line: &Line) -> f64 {
    line.points.iter().map(|(_, v)| *v).filter(|v| v.is_finite()).fold(0.0, f64::max)
}

/// The last value until a moment: a value that does not change is stored rarely.
#[must_use]
pub fn held(line: &Line, at: i64) -> Option<f64> {
    let behind = line.points.partition_point(|(t, _)| *t <= at);
    line.points.get(behind.checked_sub(1)?).map(|(_, v)| *v)
}
