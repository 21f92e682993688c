//! Capacity: what a launch should take by its plan, what it held and what it is allowed, for each workload that died.

use crate::incident::{plane_word, workload};
use crate::shell::{Frame, Room};
use crate::text::T;
use dualplane_base::Class;
use dualplane_base::text::counted;
use dualplane_base::units::Bytes;
use dualplane_incidents::{Fleet, Incident, Memory};
use maud::{Markup, html};

/// A planned peak above this share of the limit leaves no room for what no plan knows.
const TIGHT: f64 = 0.9;

/// How the limit stands to the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    Short,
    Tight,
    Enough,
    Untold,
}

/// Who died of host RAM had not enough of it, whatever a plan says.
fn stand(i: &Incident) -> Stand {
    if i.class == Class::HostOomKilled { Stand::Short } else { room(&i.memory) }
}

fn room(m: &Memory) -> Stand {
    let need = m.planned.map(|p| p.expected).max(m.held_bytes);
    match need.zip(m.limit_bytes.filter(|l| *l > 0)) {
        Some((need, limit)) if need > limit => Stand::Short,
        Some((need, limit)) if need as f64 > limit as f64 * TIGHT => Stand::Tight,
        Some(_) => Stand::Enough,
        None => Stand::Untold,
    }
}

fn tells(i: &Incident) -> bool {
    i.memory.planned.is_some() || i.memory.held_bytes.is_some()
}

/// The page: the last death of each cause, those whose limit is short first.
#[must_use]
pub fn page(frame: &Frame<'_>, fleet: &Fleet) -> String {
    let mut all: Vec<&Incident> = fleet.worst.iter().map(|w| &w.latest).collect();
    all.sort_by(|a, b| b.died_at.cmp(&a.died_at).then_with(|| a.id.cmp(&b.id)));
    let mut seen = std::collections::BTreeSet::new();
    let (mut told, untold): (Vec<&Incident>, Vec<&Incident>) = all.into_iter().partition(|i| tells(i));
    told.retain(|i| seen.insert(i.loop_key.as_str()));
    told.sort_by_key(|i| stand(i));
    let untold = untold.iter().filter(|i| seen.insert(i.loop_key.as_str())).count();
    let main = html! {
        div.top {
            h1 { "Capacity" }
            p.soft { "host RAM: the plan of each launch against its limit and against what it held at its last death" }
        }
        @if told.is_empty() {
            div.empty { p { b { "No incident tells what its launch should take or what it held." } } p { "A plan is made where the evidence holds the command line or the manifest, and what was held is read from the kernel's record and the agent's samples." } }
        } @else {
            table.capacity {
                caption.off { "Workloads, those whose limit is short first" }
                thead {
                    tr {
                        th scope="col" { "Workload" } th scope="col" { "Plan, held and limit" }
                        th.num scope="col" { "Planned peak" } th.num scope="col" { "Held" } th.num scope="col" { "Limit" } th.num scope="col" { "Headroom" }
                    }
                }
                tbody { @for i in &told { (row(frame, i)) } }
            }
        }
        @if untold > 0 { p.soft { (counted(untold, "workload")) " more died without telling either." } }
    };
    frame.page("Capacity", Room::Capacity, &[], &main)
}

fn row(frame: &Frame<'_>, i: &Incident) -> Markup {
    let m = &i.memory;
    let bytes = |b: Option<u64>| b.map_or_else(|| "–".to_owned(), |b| Bytes(b).to_string());
    let need = m.planned.map(|p| p.expected).max(m.held_bytes);
    let by_itself = room(m);
    let (word, class) = match stand(i) {
        // The plan is below what was held, or what was held was not read: the kernel's word stands.
        Stand::Short if by_itself != Stand::Short => ("it was killed at this limit", "short"),
        Stand::Short => ("too small", "short"),
        Stand::Enough if i.class == Class::HostNodeOom => ("enough; the node was full", "tight"),
        Stand::Tight => ("tight", "tight"),
        Stand::Enough => ("enough", "enough"),
        Stand::Untold => ("no limit told", "untold"),
    };
    let killed = stand(i) == Stand::Short && by_itself != Stand::Short;
    let headroom = need.zip(m.limit_bytes.filter(|l| *l > 0)).filter(|_| !killed).map(|(need, limit)| {
        if need > limit { format!("−{}", Bytes(need - limit)) } else { Bytes(limit - need).to_string() }
    });
    html! {
        tr class=(plane_word(i)) {
            th scope="row" {
                a href=(T(&frame.incident(&i.id))) { (T(&workload(i))) }
                span.soft { (T(if i.model.is_empty() { i.container.as_str() } else { i.model.as_str() })) }
            }
            td.wide { (picture(m)) }
            td.num data-label="Planned peak" {
                (bytes(m.planned.map(|p| p.expected)))
                @if let Some(p) = m.planned.filter(|p| p.low != p.high) { span.soft { (Bytes(p.low)) " to " (Bytes(p.high)) } }
            }
            td.num data-label="Held" { (bytes(m.held_bytes)) }
            td.num data-label="Limit" { (bytes(m.limit_bytes)) }
            td.num data-label="Headroom" { span.room.(class) { (headroom.unwrap_or_default()) " " (word) } }
        }
    }
}

/// Plan with its range, held and limit on one scale.
fn picture(m: &Memory) -> Markup {
    const WIDTH: f64 = 240.0;
    let all = [m.planned.map(|p| p.high), m.held_bytes, m.limit_bytes];
    let most = all.into_iter().flatten().max().unwrap_or(1).max(1) as f64 * 1.03;
    let x = |b: u64| b as f64 / most * WIDTH;
    let at = |v: f64| format!("{v:.1}");
    html! {
        svg.room viewBox={ "0 0 " (WIDTH) " 26" } role="img" aria-label="plan above, held below, the limit as a line" {
            @if let Some(p) = m.planned {
                rect.plan x="0" y="2" width=(at(x(p.expected))) height="9" rx="1.5" {}
                line.range x1=(at(x(p.low))) x2=(at(x(p.high))) y1="6.5" y2="6.5" {}
            }
            @if let Some(h) = m.held_bytes { rect.held x="0" y="14" width=(at(x(h))) height="9" rx="1.5" {} }
            @if let Some(l) = m.limit_bytes { line.limit x1=(at(x(l))) x2=(at(x(l))) y1="0" y2="26" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dualplane_incidents::Planned;

    #[test]
    fn a_death_of_host_ram_is_no_all_clear() {
        let mut i: Incident = serde_json::from_str(include_str!("../tests/common/incident.json")).unwrap();
        i.memory = Memory {
            planned: Some(Planned { low: 10, expected: 10, high: 10 }),
            limit_bytes: Some(100),
            ..Memory::default()
        };
        i.class = Class::HostOomKilled;
        assert_eq!((room(&i.memory), stand(&i)), (Stand::Enough, Stand::Short));
    }

    #[test]
    fn the_larger_of_plan_and_held_decides_and_no_limit_is_no_room() {
        let m = |planned: Option<u64>, held_bytes, limit_bytes| Memory {
            planned: planned.map(|e| Planned { low: e, expected: e, high: e }),
            held_bytes,
            limit_bytes,
            ..Memory::default()
        };
        assert_eq!(room(&m(Some(50), Some(101), Some(100))), Stand::Short);
        assert_eq!(room(&m(Some(101), None, Some(100))), Stand::Short);
        assert_eq!(room(&m(Some(95), None, Some(100))), Stand::Tight);
        assert_eq!(room(&m(Some(50), Some(60), Some(100))), Stand::Enough);
        assert_eq!(room(&m(Some(50), None, None)), Stand::Untold);
        assert_eq!(room(&m(Some(50), None, Some(0))), Stand::Untold, "0 is no limit");
    }
}
