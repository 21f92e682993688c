//! Capacity: what a launch should take of both memories by its plan, what it held and what it had, for each workload that died.

use crate::incident::workload;
use crate::shell::{Frame, Room};
use crate::text::T;
use dualplane_base::Class;
use dualplane_base::text::counted;
use dualplane_base::units::Bytes;
use dualplane_core::verdict::pressure::VRAM_HIGH;
use dualplane_incidents::{Fleet, Incident, Planned, Pressure};
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

/// One memory of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    vram: bool,
    planned: Option<Planned>,
    held: Option<u64>,
    limit: Option<u64>,
}

impl Memory {
    fn host(i: &Incident) -> Self {
        let m = i.memory;
        Self { vram: false, planned: m.planned, held: m.held_bytes, limit: m.limit_bytes.filter(|l| *l > 0) }
    }

    fn vram(i: &Incident) -> Self {
        let v = i.vram;
        Self { vram: true, planned: v.planned, held: v.held_bytes, limit: v.total_bytes.filter(|l| *l > 0) }
    }

    fn tells(&self) -> bool {
        self.planned.is_some() || self.held.is_some()
    }

    fn need(&self) -> Option<u64> {
        self.planned.map(|p| p.expected).max(self.held)
    }

    /// By the figures alone.
    fn room(&self) -> Stand {
        // Engines reserve a card at their start: what triage calls saturated is tight there.
        let share = if self.vram { VRAM_HIGH } else { TIGHT };
        match self.need().zip(self.limit) {
            Some((need, limit)) if need > limit => Stand::Short,
            Some((need, limit)) if need as f64 > limit as f64 * share => Stand::Tight,
            Some(_) => Stand::Enough,
            None => Stand::Untold,
        }
    }

    /// Who died of a memory had not enough of it, and who lives at its limit has none to spare, whatever a plan says.
    fn stand(&self, i: &Incident) -> Stand {
        let at_limit = match i.pressure {
            Some(Pressure::Both) => true,
            Some(Pressure::Host) => !self.vram,
            Some(Pressure::Gpu) => self.vram,
            None => false,
        };
        match self.died(i) {
            Some(_) => Stand::Short,
            None if at_limit => self.room().min(Stand::Tight),
            None => self.room(),
        }
    }

    /// How it died of this memory.
    fn died(&self, i: &Incident) -> Option<&'static str> {
        Some(match (self.vram, i.class) {
            (false, Class::HostOomKilled) => "it was killed at this limit",
            (true, Class::CudaOomLoad | Class::CudaOomRuntime) => "it ran out",
            (true, Class::Fragmentation) => "it was free in pieces only",
            (true, Class::GpuCapacityConflict) => "another process held it",
            (true, Class::KvCacheCapacity) => "its KV cache was too small",
            (true, Class::MigSliceTooSmall) => "the MIG slice was too small",
            _ => return None,
        })
    }
}

/// The page: of each workload its last death that tells, those whose memory is short first.
#[must_use]
pub fn page(frame: &Frame<'_>, fleet: &Fleet) -> String {
    let mut all: Vec<&Incident> = fleet.worst.iter().map(|w| &w.latest).collect();
    all.sort_by(|a, b| b.died_at.cmp(&a.died_at).then_with(|| a.id.cmp(&b.id)));
    let mut seen = std::collections::BTreeSet::new();
    let mut told: Vec<(Memory, &Incident)> = Vec::new();
    // Each memory of a workload by the last death that tells of it.
    for i in &all {
        for m in [Memory::host(i), Memory::vram(i)] {
            if m.tells() && seen.insert((i.loop_key.as_str(), m.vram)) {
                told.push((m, i));
            }
        }
    }
    told.sort_by_key(|(m, i)| m.stand(i));
    let either = |key: &str| seen.contains(&(key, false)) || seen.contains(&(key, true));
    let silent: std::collections::BTreeSet<&str> =
        all.iter().map(|i| i.loop_key.as_str()).filter(|key| !either(key)).collect();
    let main = html! {
        div.top {
            h1 { "Capacity" }
            p.soft { "host RAM and VRAM of a card: the plan of each launch, what it held at its last death, and what it had" }
        }
        @if told.is_empty() {
            div.empty { p { b { "No incident tells what its launch should take or what it held." } } p { "A plan is made where the evidence holds the command line or the manifest, and what was held is read from the kernel's record, the first error and the agent's samples." } }
        } @else {
            table.capacity {
                caption.off { "Memory of workloads, that which is short first" }
                thead {
                    tr {
                        th scope="col" { "Workload" } th scope="col" { "Memory" } th scope="col" { "Plan, held and limit" }
                        th.num scope="col" { "Planned peak" } th.num scope="col" { "Held" } th.num scope="col" { "Limit" } th.num scope="col" { "Headroom" }
                    }
                }
                tbody { @for (m, i) in &told { (row(frame, *m, i)) } }
            }
        }
        @if !silent.is_empty() { p.soft { (counted(silent.len(), "workload")) " more died without telling either." } }
    };
    frame.page("Capacity", Room::Capacity, &[], &main)
}

fn row(frame: &Frame<'_>, m: Memory, i: &Incident) -> Markup {
    let bytes = |b: Option<u64>| b.map_or_else(|| "–".to_owned(), |b| Bytes(b).to_string());
    let by_itself = m.room();
    // The plan is below what was held, or what was held was not read: the death stands.
    let died = m.died(i).filter(|_| by_itself != Stand::Short || m.vram);
    let (word, class) = match m.stand(i) {
        Stand::Short => (died.unwrap_or("too small"), "short"),
        Stand::Enough if !m.vram && i.class == Class::HostNodeOom => ("enough; the node was full", "tight"),
        Stand::Tight => ("tight", "tight"),
        Stand::Enough => ("enough", "enough"),
        Stand::Untold => (if m.vram { "no card told" } else { "no limit told" }, "untold"),
    };
    let headroom = m.need().zip(m.limit).filter(|_| died.is_none()).map(|(need, limit)| {
        if need > limit { format!("−{}", Bytes(need - limit)) } else { Bytes(limit - need).to_string() }
    });
    let (plane, name) = if m.vram { ("gpu", "VRAM") } else { ("host", "Host RAM") };
    html! {
        tr class=(plane) {
            th scope="row" {
                a href=(T(&frame.incident(&i.id))) { (T(&workload(i))) }
                span.soft { (T(if i.model.is_empty() { i.container.as_str() } else { i.model.as_str() })) }
            }
            td.plane data-label="Memory" { span.badge { (name) } }
            td.wide { (picture(m)) }
            td.num data-label="Planned peak" {
                (bytes(m.planned.map(|p| p.expected)))
                @if let Some(p) = m.planned.filter(|p| p.low != p.high) { span.soft { (Bytes(p.low)) " to " (Bytes(p.high)) } }
            }
            td.num data-label="Held" { (bytes(m.held)) }
            td.num data-label="Limit" { (bytes(m.limit)) }
            td.num data-label="Headroom" { span.room.(class) { (headroom.unwrap_or_default()) " " (word) } }
        }
    }
}

/// Plan with its range, held and limit on one scale.
fn picture(m: Memory) -> Markup {
    const WIDTH: f64 = 240.0;
    let all = [m.planned.map(|p| p.high), m.held, m.limit];
    let most = all.into_iter().flatten().max().unwrap_or(1).max(1) as f64 * 1.03;
    let x = |b: u64| b as f64 / most * WIDTH;
    let at = |v: f64| format!("{v:.1}");
    html! {
        svg.room viewBox={ "0 0 " (WIDTH) " 26" } role="img" aria-label="plan above, held below, the limit as a line" {
            @if let Some(p) = m.planned {
                rect.plan x="0" y="2" width=(at(x(p.expected))) height="9" rx="1.5" {}
                line.range x1=(at(x(p.low))) x2=(at(x(p.high))) y1="6.5" y2="6.5" {}
            }
            @if let Some(h) = m.held { rect.held x="0" y="14" width=(at(x(h))) height="9" rx="1.5" {} }
            @if let Some(l) = m.limit { line.limit x1=(at(x(l))) x2=(at(x(l))) y1="0" y2="26" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident(class: Class) -> Incident {
        let mut i: Incident = serde_json::from_str(include_str!("../tests/common/incident.json")).unwrap();
        i.class = class;
        i
    }

    fn memory(vram: bool, planned: Option<u64>, held: Option<u64>, limit: Option<u64>) -> Memory {
        let planned = planned.map(|e| Planned { low: e, expected: e, high: e });
        Memory { vram, planned, held, limit }
    }

    #[test]
    fn a_death_of_a_memory_is_no_all_clear() {
        let m = |vram| memory(vram, Some(10), None, Some(100));
        for (class, host, vram) in [
            (Class::HostOomKilled, Stand::Short, Stand::Enough),
            (Class::CudaOomRuntime, Stand::Enough, Stand::Short),
            (Class::KvCacheCapacity, Stand::Enough, Stand::Short),
            (Class::XidHardware, Stand::Enough, Stand::Enough),
        ] {
            let i = incident(class);
            assert_eq!((m(false).stand(&i), m(true).stand(&i)), (host, vram), "{class}");
        }
    }

    #[test]
    fn who_lives_at_its_limit_has_none_to_spare() {
        let mut i = incident(Class::Unknown);
        for (pressure, host, vram) in [
            (Pressure::Host, Stand::Tight, Stand::Enough),
            (Pressure::Gpu, Stand::Enough, Stand::Tight),
            (Pressure::Both, Stand::Tight, Stand::Tight),
        ] {
            i.pressure = Some(pressure);
            let m = |vram| memory(vram, Some(10), None, Some(100)).stand(&i);
            assert_eq!((m(false), m(true)), (host, vram), "{pressure:?}");
            assert_eq!(
                memory(pressure != Pressure::Host, None, Some(101), Some(100)).stand(&i),
                Stand::Short
            );
        }
    }

    #[test]
    fn the_larger_of_plan_and_held_decides_and_no_limit_is_no_room() {
        let m = |planned, held, limit| memory(false, planned, held, limit).room();
        assert_eq!(m(Some(50), Some(101), Some(100)), Stand::Short);
        assert_eq!(m(Some(101), None, Some(100)), Stand::Short);
        assert_eq!(m(Some(95), None, Some(100)), Stand::Tight);
        assert_eq!(m(Some(50), Some(60), Some(100)), Stand::Enough);
        assert_eq!(m(Some(50), None, None), Stand::Untold);
        assert_eq!(memory(true, None, Some(92), Some(100)).room(), Stand::Enough, "engines reserve a card");
        let mut i = incident(Class::Unknown);
        i.memory.limit_bytes = Some(0);
        assert_eq!(Memory::host(&i).limit, None, "0 is no limit");
    }
}
