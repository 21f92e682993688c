//! Both planes on one clock: a picture that needs no script, and the same figures for the module that zooms.

use super::Section;
use crate::scene::{Mark, Measure, Planes, Scene, Series};
use crate::text::{T, Told, Whole, instant};
use crate::verdict::Verdict;
use dualplane_base::Phase;
use dualplane_base::plot::{Frame, Key, Unit};
use dualplane_base::text::printable;
use maud::{Markup, PreEscaped, html};
use serde_json::json;

/// Cards that are drawn; the fullest come first.
const CARDS: usize = 8;
/// Stretches of time that tell their values under the pointer.
const LOOKS: i64 = 60;
/// Rows of the table.
const ROWS: usize = 24;

/// A panel: its title, its unit, its lines with their colours, and its limit.
struct Panel {
    title: &'static str,
    unit: Unit,
    lines: &'static [(Measure, &'static str, &'static str)],
    limit: Option<(Measure, &'static str)>,
}

const PANELS: &[Panel] = &[
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
struct Drawn<'a> {
    panel: &'static Panel,
    lines: Vec<(&'a Series, String, &'static str)>,
    limit: Option<f64>,
}

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
    let drawn: Vec<Drawn<'_>> = PANELS.iter().filter_map(|p| drawn(planes, p)).collect();
    if drawn.is_empty() {
        return None;
    }
    let body = html! {
        p.soft { (Told(instant(planes.from))) " to " (Told(instant(planes.to))) }
        div.planes tabindex="0" role="group" aria-label="Pictures of both planes" data-planes=[(!print).then(|| Whole(data(planes, &drawn)))] {
            (band(planes))
            @for d in &drawn { (picture(planes, d)) }
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
            (table(planes, &drawn))
        }
    };
    Some(Section("planes", title, body))
}

fn drawn<'a>(planes: &'a Planes, panel: &'static Panel) -> Option<Drawn<'a>> {
    let mut lines: Vec<(&Series, String, &'static str)> = Vec::new();
    for (measure, label, colour) in panel.lines {
        for s in planes.series.iter().filter(|s| s.measure == *measure).take(CARDS) {
            let label = s.card.as_ref().map_or_else(|| (*label).to_owned(), |c| format!("card {c}, {label}"));
            lines.push((s, label, colour));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let of = |m: Measure| planes.series.iter().filter(move |s| s.measure == m);
    // Cards of one pod are of one kind; where they are not, the smallest fills first.
    let limit = panel.limit.and_then(|(m, _)| of(m).map(most).reduce(f64::min)).filter(|l| *l > 0.0);
    Some(Drawn { panel, lines, limit })
}

/// The most that a line reached.
fn most(s: &Series) -> f64 {
    s.points.iter().map(|(_, v)| *v).filter(|v| v.is_finite()).fold(0.0, f64::max)
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
    match m.kind.as_str() {
        "first_error" => "first",
        "end" => "moment",
        "xid" => "xid",
        "start" => "start",
        _ => "event",
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

/// One picture of the same form as those of `triage -o html`.
fn picture(planes: &Planes, d: &Drawn<'_>) -> Markup {
    let highest = d.lines.iter().map(|(s, ..)| most(s)).fold(0.0, f64::max);
    let frame = Frame::new((planes.from as f64, planes.to as f64), d.panel.unit, highest, d.limit);
    let mut out = String::new();
    frame.open(d.panel.title, |at| before(planes, at as i64), &mut out);
    for (s, _, colour) in &d.lines {
        frame.line(s.points.iter().map(|(at, v)| (*at as f64, Some(*v))), colour, &mut out);
    }
    frame.limit(&mut out);
    for m in &planes.marks {
        let name = if matches!(kind(m), "first" | "moment") { m.text.as_str() } else { "" };
        frame.moment(m.at as f64, kind(m), name, &mut out);
    }
    let span = planes.to.saturating_sub(planes.from);
    for i in 0..LOOKS {
        let edge = |i: i64| planes.from.saturating_add((span as f64 * i as f64 / LOOKS as f64) as i64);
        let at = edge(i + 1);
        let said: Vec<String> = d
            .lines
            .iter()
            .filter_map(|(s, label, _)| Some(format!("{label} {}", d.panel.unit.show(held(s, at)?))))
            .collect();
        if !said.is_empty() {
            let words = format!("{}: {}", before(planes, at), said.join(", "));
            frame.told((edge(i) as f64, at as f64), &words, &mut out);
        }
    }
    let keys = d.lines.iter().map(|(s, label, colour)| Key {
        colour,
        label: format!("{label}, most {}", d.panel.unit.show(most(s))),
    });
    let limit = d.limit.zip(d.panel.limit).map(|(l, (_, word))| format!("{word} {}", d.panel.unit.show(l)));
    frame.close(keys, limit, &mut out);
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

/// The last value until a moment: a value that does not change is stored rarely.
fn held(s: &Series, at: i64) -> Option<f64> {
    let behind = s.points.partition_point(|(t, _)| *t <= at);
    s.points.get(behind.checked_sub(1)?).map(|(_, v)| *v)
}

fn table(planes: &Planes, drawn: &[Drawn<'_>]) -> Markup {
    let span = planes.to.saturating_sub(planes.from);
    let columns: Vec<(&Series, String, Unit)> = drawn
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
                        @let at = planes.from.saturating_add((span as f64 * i as f64 / ROWS as f64) as i64);
                        tr {
                            th scope="row" { (before(planes, at)) }
                            @for (s, _, unit) in &columns { td { @if let Some(v) = held(s, at) { (unit.show(v)) } } }
                        }
                    }
                }
            }
        }
    }
}
