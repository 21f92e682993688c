//! Both planes on one clock up to the end, with what the verdict and the cluster say of moments and phases.

use std::collections::BTreeMap;

use dualplane_base::Phase;
use dualplane_base::time::Stamp;
use dualplane_core::verdict::timeline::{Line, Measure, Moment, timeline};
use dualplane_report::Report;

/// Marks of one picture: more are not told apart.
const MAX_MARKS: usize = 16;
const MAX_PHASES: usize = 32;

/// What a moment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// The container's end.
    End,
    /// An event of the cluster.
    Event,
    /// The first error.
    FirstError,
    /// The container's start.
    Start,
    /// An Xid of the driver.
    Xid,
}

/// A moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Milliseconds since 1970.
    pub at: i64,
    /// What it is.
    pub kind: MarkKind,
    /// In a few words.
    pub text: String,
}

/// What the server was doing, from one moment to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Milliseconds since 1970.
    pub from: i64,
    /// The same.
    pub to: i64,
    /// The phase.
    pub phase: Phase,
}

/// Lines, moments and phases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Planes {
    /// First moment.
    pub from: i64,
    /// Last moment.
    pub to: i64,
    /// By measure and card.
    pub series: Vec<Line>,
    /// In order.
    pub marks: Vec<Mark>,
    /// In order, without overlap.
    pub phases: Vec<Stretch>,
}

impl Planes {
    /// The container's end, or the last moment.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.marks.iter().find(|m| m.kind == MarkKind::End).map_or(self.to, |m| m.at)
    }

    /// The most that a line of a measure reached.
    #[must_use]
    pub fn most(&self, measure: Measure) -> Option<f64> {
        let of = self.series.iter().filter(|s| s.measure == measure);
        of.flat_map(|s| &s.points).map(|(_, v)| *v).filter(|v| v.is_finite()).reduce(f64::max)
    }
}

pub(super) fn of(report: &Report) -> Option<Planes> {
    let drawn = timeline(&report.bundle, &report.facts, &report.verdict);
    let (from, to) = drawn.span()?;
    let moments = drawn.moments.iter().map(|(at, what)| match what {
        Moment::FirstError => Mark { at: *at, kind: MarkKind::FirstError, text: "first error".to_owned() },
        Moment::End => Mark { at: *at, kind: MarkKind::End, text: "end".to_owned() },
    });
    let end = drawn.moments.iter().find(|(_, m)| *m == Moment::End).map_or(to, |(at, _)| *at);
    let near = Stamp::Wall { ms: end, zoned: true, year: true };
    // Stamps of a log in local time have been moved as a whole when it was read: a line alone does not tell its zone.
    let clock = |stamp: Option<Stamp>| {
        let stamp = stamp?.with_year_near(Some(near));
        match stamp {
            Stamp::Wall { ms, year: true, .. } => Some(ms),
            _ => None,
        }
    };
    let inside = |at: &i64| (from..=to).contains(at);
    let mut marks: Vec<Mark> = moments.collect();
    let started = report.verdict.subject.death.as_ref().and_then(|d| clock(d.started));
    if let Some(at) = started.filter(inside) {
        marks.push(Mark { at, kind: MarkKind::Start, text: "container started".to_owned() });
    }
    for x in &report.facts.xids {
        if let Some(at) = clock(x.stamp).filter(inside) {
            marks.push(Mark { at, kind: MarkKind::Xid, text: format!("Xid {}", x.code) });
        }
    }
    let pod = report.verdict.subject.pod.as_deref();
    for e in report.bundle.events.iter().filter(|e| pod == Some(e.object.1.as_str()) && e.warning) {
        if let Some(at) = clock(e.last.or(e.first)).filter(inside) {
            marks.push(Mark { at, kind: MarkKind::Event, text: e.reason.clone() });
        }
    }
    marks.sort();
    marks.dedup();
    // The verdict's own moments outlast any crowd.
    let kept = |m: &Mark| matches!(m.kind, MarkKind::FirstError | MarkKind::End | MarkKind::Start);
    let own = marks.iter().filter(|m| kept(m)).count();
    let mut room = MAX_MARKS.saturating_sub(own);
    marks.retain(|m| {
        kept(m) || {
            let free = room > 0;
            room = room.saturating_sub(1);
            free
        }
    });
    let phases = phases(report, started, &drawn.lines, (from, to.min(end)), clock);
    Some(Planes { from, to, series: drawn.lines, marks, phases })
}

/// What the lines of the server's log say of its phase; between two of them the earlier one goes on.
fn phases(
    report: &Report,
    started: Option<i64>,
    series: &[Line],
    (from, to): (i64, i64),
    clock: impl Fn(Option<Stamp>) -> Option<i64>,
) -> Vec<Stretch> {
    let mut told: BTreeMap<i64, Phase> = BTreeMap::new();
    for h in report.facts.hits.iter().filter(|h| !h.kernel && h.phase != Phase::Unknown) {
        if let Some(at) = clock(h.stamp) {
            told.insert(at, h.phase);
        }
    }
    for served in report.facts.logs.iter().filter(|l| !l.kernel).filter_map(|l| clock(l.last_served_at)) {
        told.entry(served).or_insert(Phase::Traffic);
    }
    // A request that runs is traffic, whether or not the log tells of it.
    let running = series.iter().filter(|s| s.measure == Measure::Running).flat_map(|s| &s.points);
    if let Some((at, _)) = running.into_iter().find(|(_, n)| *n > 0.0) {
        told.insert(*at, Phase::Traffic);
    }
    // A container that has just started loads, whatever comes first in its log.
    if let Some(at) = started {
        told.retain(|t, _| *t >= at);
        told.entry(at).or_insert(Phase::Load);
    }
    if told.is_empty() && report.verdict.phase != Phase::Unknown {
        return vec![Stretch { from, to, phase: report.verdict.phase }];
    }
    let mut out: Vec<Stretch> = Vec::new();
    for (at, phase) in told.range(..=to).map(|(at, phase)| (*at, *phase)) {
        match out.last_mut() {
            Some(last) if last.phase == phase => {}
            Some(last) => {
                last.to = at;
                out.push(Stretch { from: at, to, phase });
            }
            None => out.push(Stretch { from: at, to, phase }),
        }
    }
    out.retain_mut(|s| {
        s.from = s.from.max(from);
        s.to > s.from
    });
    out.truncate(MAX_PHASES);
    out
}
