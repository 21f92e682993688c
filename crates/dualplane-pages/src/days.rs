//! Incidents of each day as bars, by plane: when it began, at a glance.

use std::collections::BTreeMap;

use dualplane_base::text::counted;
use dualplane_incidents::Time;
use maud::{Markup, html};

/// Days that are drawn, the last of them today.
const DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;
const HEIGHT: f64 = 60.0;
const STEP: f64 = 20.0;
/// From the ground up.
const PLANES: [(&str, &str); 4] =
    [("host", "host RAM"), ("gpu", "VRAM"), ("hardware", "hardware"), ("none", "neither")];

/// The last thirty days; nothing where none of them has an incident.
pub(crate) fn days(days: &BTreeMap<String, BTreeMap<String, u64>>, now_ms: i64) -> Markup {
    let of = |before: i64| {
        let day = Time::from_ms(now_ms.saturating_sub(before * DAY_MS)).day();
        let planes = days.get(&day).cloned().unwrap_or_default();
        (day, planes)
    };
    let last: Vec<(String, BTreeMap<String, u64>)> = (0..DAYS).rev().map(of).collect();
    let sum = |planes: &BTreeMap<String, u64>| planes.values().copied().fold(0, u64::saturating_add);
    let most = last.iter().map(|(_, p)| sum(p)).max().unwrap_or_default();
    if most == 0 {
        return html! {};
    }
    let total = last.iter().map(|(_, p)| sum(p)).fold(0, u64::saturating_add);
    let width = STEP * DAYS as f64;
    let told = format!("{} in the last {DAYS} days, at most {most} on one day", counted(total, "incident"));
    html! {
        figure.days {
            figcaption { (told) }
            svg viewBox={ "0 0 " (width) " " (HEIGHT + 4.0) } preserveAspectRatio="none" role="img" aria-label=(told) {
                @for (i, (day, planes)) in last.iter().enumerate() {
                    g {
                        title { (day) ": " (counted(sum(planes), "incident")) @for (plane, name) in PLANES { @if let Some(n) = planes.get(plane) { ", " (n) " " (name) } } }
                        rect.day x={ (STEP * i as f64) } y="0" width=(STEP) height=(HEIGHT) {}
                        @for (plane, from, to) in stack(planes) {
                            rect class=(plane) x={ (STEP * i as f64 + 2.0) } width={ (STEP - 4.0) }
                                y={ (format!("{:.1}", HEIGHT * (1.0 - to as f64 / most as f64))) }
                                height={ (format!("{:.1}", (HEIGHT * (to - from) as f64 / most as f64).max(1.0))) } {}
                        }
                    }
                }
                line.ground x1="0" x2=(width) y1=(HEIGHT) y2=(HEIGHT) {}
            }
            p.ends { span { (last.first().map_or("", |d| d.0.as_str())) } span { (last.last().map_or("", |d| d.0.as_str())) } }
            p.legend { @for (plane, name) in PLANES { span { span.dot.(plane) aria-hidden="true" {} (name) } } }
        }
    }
}

/// Each plane with where it begins and ends.
fn stack(planes: &BTreeMap<String, u64>) -> Vec<(&'static str, u64, u64)> {
    let mut at = 0_u64;
    let mut out = Vec::new();
    for (plane, _) in PLANES {
        let n = planes.get(plane).copied().unwrap_or_default();
        if n > 0 {
            out.push((plane, at, at.saturating_add(n)));
            at = at.saturating_add(n);
        }
    }
    out
}
