//! Both planes on one clock: a picture that needs no script, and the same figures for the module that zooms.

use super::Section;
use crate::scene::{Mark, MarkKind, Planes, Scene};
use crate::text::{T, Told, Whole, instant};
use crate::verdict::Verdict;
use dualplane_base::Phase;
use dualplane_base::plot::{Frame, Unit};
use dualplane_base::text::printable;
use dualplane_core::verdict::timeline::Line;
use dualplane_report::pictures::{Clock, Drawn, PANELS, held};
use maud::{Markup, PreEscaped, html};
use serde_json::json;

/// Cards that are drawn; the fullest come first.
const CARDS: usize = 8;
/// Rows of the table.
const ROWS: usize = 24;

pub(super) fn section(v: &Verdict, scene: Option<&Scene>, print: bool) -> Option<Section> {
    let title = "Both planes up to the end";
    let Some(planes) = scene.and_then(|s| s.planes.as_ref()) else {
        // Where memory is not the matter, nobody misses a picture of it.
        let matters = !matches!(v.head.class.as_str(), "not_memory" | "");
        return matters.then(|| {
            let body = html! {
                p.soft {
                    @if scene.is_some() { "The bundle holds no samples of memory over time." } @else { "No bundle was sent with this report, so there are no samples of memory over time." }
                    " The agent keeps the last minutes of both planes; " code { "dualplane capture pod/NAME -n NAMESPACE --prometheus URL" } " fetches them from Prometheus."
                }
            };
            Section("planes", title, body)
        });
    };
    let drawn: Vec<Drawn<'_>> = PANELS.iter().filter_map(|p| p.of(&planes.series, CARDS)).collect();
    if drawn.is_empty() {
        return None;
    }
    let clock = Clock { from: planes.from, to: planes.to, told: &|at| before(planes, at) };
    let body = html! {
        p.soft { (Told(instant(planes.from))) " to " (Told(instant(planes.to))) }
        div.planes tabindex="0" role="group" aria-label="Pictures of both planes" data-planes=[(!print).then(|| Whole(data(planes, &drawn)))] {
            (band(planes))
            @for d in &drawn { (picture(d, &clock, planes)) }
        }
        @if !planes.marks.is_empty() {
            ol.marks {
                @for m in &planes.marks {
                    li class=(kind(m)) { b { (T(&m.text)) } " " (Told(instant(m.at))) " " span.soft { (before(planes, m.at)) } }
                }
            }
        }
        details.fold open[print] {
            summary { "The figures" }
            (table(&drawn, &clock))
        }
    };
    Some(Section("planes", title, body))
}

/// Seconds or minutes to the end.
fn before(planes: &Planes, at: i64) -> String {
    let end = planes.end();
    let (sign, ms) = if at > end { ("+", at.saturating_sub(end)) } else { ("−", end.saturating_sub(at)) };
    match ms {
        0 => "at the end".to_owned(),
        ms if ms < 1_000 => format!("{sign}{ms} ms"),
        ms if ms < 120_000 => format!("{sign}{} s", ms / 1000),
        ms => format!("{sign}{} min {:02} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

fn kind(m: &Mark) -> &'static str {
    match m.kind {
        MarkKind::FirstError => "first",
        MarkKind::End => "moment",
        MarkKind::Xid => "xid",
        MarkKind::Start => "start",
        MarkKind::Event => "event",
    }
}

fn phase(p: Phase) -> &'static str {
    match p {
        Phase::Load => "load",
        Phase::Profile => "profile",
        Phase::Traffic => "traffic",
        Phase::Idle => "idle",
        Phase::Unknown => "unknown",
    }
}

/// The phases as a band above the pictures, on their clock.
fn band(planes: &Planes) -> Markup {
    let frame = Frame::new((planes.from as f64, planes.to as f64), Unit::Count, 1.0, None);
    let n = |v: f64| format!("{v:.1}");
    let told: Vec<String> = planes
        .phases
        .iter()
        .map(|s| format!("{} {} to {}", phase(s.phase), before(planes, s.from), before(planes, s.to)))
        .collect();
    html! {
        @if !planes.phases.is_empty() {
            svg.band viewBox="0 0 900 22" role="img" aria-label={ "Phases: " (told.join(", ")) } {
                @for s in &planes.phases {
                    @let (x0, x1) = (frame.x(s.from as f64), frame.x(s.to as f64));
                    rect class={ "phase " (phase(s.phase)) } x=(n(x0)) width=(n((x1 - x0).max(1.0))) y="2" height="18" rx="3" { title { (phase(s.phase)) } }
                    @if x1 - x0 > 52.0 { text.mid x=(n((x0 + x1) / 2.0)) y="15" { (phase(s.phase)) } }
                }
            }
        }
    }
}

fn picture(d: &Drawn<'_>, clock: &Clock<'_>, planes: &Planes) -> Markup {
    let mut out = String::new();
    let moments = planes.marks.iter().map(|m| {
        let named = matches!(m.kind, MarkKind::FirstError | MarkKind::End);
        (m.at, kind(m), if named { m.text.as_str() } else { "" })
    });
    d.svg(clock, moments, &mut out);
    PreEscaped(out)
}

/// What the module draws: the same lines, on the same clock.
fn data(planes: &Planes, drawn: &[Drawn<'_>]) -> String {
    let panels: Vec<serde_json::Value> = drawn
        .iter()
        .map(|d| {
            let lines: Vec<serde_json::Value> = d
                .lines
                .iter()
                .map(|(s, label, colour)| {
                    let finite = s.points.iter().filter(|(_, v)| v.is_finite());
                    let (at, values): (Vec<i64>, Vec<f64>) = finite.copied().unzip();
                    json!({"label": printable(label), "colour": colour, "at": at, "values": values})
                })
                .collect();
            let unit = match d.panel.unit {
                Unit::Bytes => "bytes",
                Unit::Share => "share",
                Unit::Count => "count",
            };
            json!({"title": d.panel.title, "unit": unit, "limit": d.limit, "limit_word": d.panel.limit.map(|(_, w)| w), "lines": lines})
        })
        .collect();
    let marks: Vec<serde_json::Value> = planes
        .marks
        .iter()
        .map(|m| json!({"at": m.at, "kind": kind(m), "text": printable(&m.text)}))
        .collect();
    let phases: Vec<serde_json::Value> =
        planes.phases.iter().map(|s| json!({"from": s.from, "to": s.to, "phase": phase(s.phase)})).collect();
    json!({"from": planes.from, "to": planes.to, "end": planes.end(), "panels": panels, "marks": marks, "phases": phases})
        .to_string()
}

fn table(drawn: &[Drawn<'_>], clock: &Clock<'_>) -> Markup {
    let columns: Vec<(&Line, String, Unit)> = drawn
        .iter()
        .flat_map(|d| {
            d.lines.iter().map(|(s, label, _)| (*s, format!("{}: {label}", d.panel.title), d.panel.unit))
        })
        .collect();
    html! {
        div.scroll tabindex="0" role="group" aria-label="The figures as a table" {
            table.numbers {
                thead { tr { th scope="col" { "to the end" } @for (_, label, _) in &columns { th scope="col" { (T(label)) } } } }
                tbody {
                    @for i in 1..=ROWS {
                        @let at = clock.stretch(i, ROWS);
                        tr {
                            th scope="row" { ((clock.told)(at)) }
                            @for (s, _, unit) in &columns { td { @if let Some(v) = held(s, at) { (unit.show(v)) } } }
                        }
                    }
                }
            }
        }
    }
}
