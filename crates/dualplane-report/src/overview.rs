//! Many pods on one page: which died of what, and how to ask for the whole report of one.

use std::collections::BTreeMap;

use super::Report;
use crate::page::Page;
use dualplane_base::Class;
use dualplane_base::order::Order as _;
use dualplane_base::style::Style;
use dualplane_base::text::{name, printable, shorten};
use dualplane_core::verdict::rules::UNDER_PRESSURE;

/// Two lines a pod, grouped by class.
#[must_use]
pub fn overview(reports: &[Report], style: Style) -> String {
    let mut w = Page::new(style);
    let mut by_class: BTreeMap<(u8, &str), Vec<&Report>> = BTreeMap::new();
    for r in reports {
        by_class.entry(group(r)).or_default().push(r);
    }
    let counts: Vec<String> =
        by_class.iter().map(|((_, class), rs)| format!("{} {class}", rs.len())).collect();
    w.wrapped(&format!("{} pods in trouble: {}", reports.len(), counts.join(", ")), "", "  ");
    for ((_, class), mut group) in by_class {
        group.order_by_key(|r| pod_of(r));
        let plane = group.first().map_or("", |r| r.verdict.class.plane().as_str());
        w.heading(&match plane {
            _ if class == UNDER_PRESSURE_TITLE => class.to_owned(),
            "none" => format!("{class} (no memory plane)"),
            plane => format!("{class} ({plane})"),
        });
        for r in group {
            pod(&mut w, r);
        }
    }
    let example = reports.first().map(|r| &r.verdict.subject);
    if let Some(s) = example
        && let Some(pod) = &s.pod
    {
        let namespace = s.namespace.as_deref().map_or(String::new(), |n| format!(" -n {}", name(n)));
        let hint = w.style.dim(&format!(
            "for one pod: dualplane triage pod/{}{namespace}; for all reports: \
            -v",
            name(pod)
        ));
        w.out.push('\n');
        w.line(&hint);
    }
    w.finish()
}

fn pod(w: &mut Page, r: &Report) {
    let s = &r.verdict.subject;
    let mut about = vec![format!("phase {}, confidence {}", r.verdict.phase, r.verdict.confidence)];
    if let Some(c) = &s.container {
        about.push(format!("container {}", name(c)));
    }
    if let Some(d) = &s.death {
        about.push(d.short());
        about.extend(d.finished.map(|t| t.show()));
    }
    if let Some(n) = s.restarts.filter(|n| *n > 0) {
        about.push(format!("{n} restarts"));
    }
    let head = w.style.bold(&printable(&pod_of(r)));
    let about = w.style.dim(&printable(&about.join(" · ")));
    w.line(&format!("  {head}  {about}"));
    let first = r.verdict.summary.lines().next().unwrap_or_default();
    let width = w.style.width.saturating_sub(4);
    let first = printable(&shorten(first, width)).into_owned();
    w.line(&format!("    {first}"));
}

fn pod_of(r: &Report) -> String {
    let s = &r.verdict.subject;
    match (&s.namespace, &s.pod) {
        (Some(n), Some(p)) if !n.is_empty() => format!("{}/{}", name(n), name(p)),
        (_, Some(p)) => name(p).into_owned(),
        _ => r.name.clone(),
    }
}

/// Pods that have not died stand in a group of their own.
const UNDER_PRESSURE_TITLE: &str = "under pressure";

fn group(r: &Report) -> (u8, &'static str) {
    match r.verdict.decided_by {
        // Behind what failed, before what is open.
        UNDER_PRESSURE => (2, UNDER_PRESSURE_TITLE),
        _ => (order(r.verdict.class), r.verdict.class.as_str()),
    }
}

/// Memory first, then hardware, then what nobody need change memory for, then what is open.
fn order(class: Class) -> u8 {
    match class {
        Class::XidHardware => 1,
        Class::Unknown => 3,
        Class::NotMemory => 4,
        _ => 0,
    }
}
