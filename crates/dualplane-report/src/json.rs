//! `dualplane.verdict/v2` and `dualplane.verdicts/v2`. Documented in `docs/verdict.md` and `docs/verdict.schema.json`.

use std::collections::BTreeMap;

pub use dualplane_base::json::pretty;
use serde::Serialize;

use super::Report;
use crate::actions::{Action, focus};
use crate::budget::{self, json::BudgetV2};
use crate::runbook;
use crate::words::{Cause, Citation};
use dualplane_base::Place;
use dualplane_base::{Class, Confidence, Phase, Plane};
use dualplane_core::evidence::Gap;
use dualplane_core::knowledge::Capture;
use dualplane_core::verdict::pressure::{Growth, Pressure};
use dualplane_core::verdict::{Beside, Collapsed, Step, Trigger};

/// Schema id of one verdict.
pub const VERDICT: &str = "dualplane.verdict/v2";
/// Schema id of several.
pub const VERDICTS: &str = "dualplane.verdicts/v2";

/// Several verdicts.
#[derive(Debug, Serialize)]
pub struct VerdictsV2<'a> {
    schema: &'static str,
    items: Vec<VerdictV2<'a>>,
}

/// One verdict.
#[derive(Debug, Serialize)]
pub struct VerdictV2<'a> {
    schema: &'static str,
    incident: &'a str,
    verdict: Head<'a>,
    trigger: Option<TriggerV2<'a>>,
    sequence: Vec<StepV2<'a>>,
    cascade: Vec<CollapsedV2<'a>>,
    causes: Vec<CauseV2<'a>>,
    actions: &'a [Action],
    missing: &'a [Gap],
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<PressureV2<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetV2<'a>>,
    subject: SubjectV2<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<OtherV2<'a>>,
    figures: Vec<Figure<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ChangeV2<'a>>,
    evidence: &'a [String],
}

/// How a server that lives stands against its limits.
#[derive(Debug, Serialize)]
struct PressureV2<'a> {
    bound_by: &'static str,
    readings: Vec<ReadingV2<'a>>,
    focus: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct ReadingV2<'a> {
    plane: Plane,
    level: &'static str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<u64>,
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    place: &'a Place,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<GrowthV2<'a>>,
}

#[derive(Debug, Serialize)]
struct GrowthV2<'a> {
    bytes_per_hour: u64,
    window_seconds: i64,
    samples: usize,
    seconds_to_limit: i64,
    first: &'a Place,
}

/// A field that the last roll-out changed.
#[derive(Debug, Serialize)]
struct ChangeV2<'a> {
    workload: &'a str,
    from_revision: i64,
    to_revision: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<&'a str>,
    field: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Head<'a> {
    class: Class,
    plane: Plane,
    phase: Phase,
    confidence: Confidence,
    title: &'static str,
    summary: &'a str,
    decided_by: &'static str,
    runbook: String,
}

#[derive(Debug, Serialize)]
struct TriggerV2<'a> {
    text: &'a str,
    file: &'a str,
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    signature: &'a str,
}

#[derive(Debug, Serialize)]
struct StepV2<'a> {
    class: Class,
    plane: Plane,
    phase: Phase,
    what: &'a str,
    trigger: Option<TriggerV2<'a>>,
}

#[derive(Debug, Serialize)]
struct CollapsedV2<'a> {
    signature: &'a str,
    meaning: &'a str,
    count: u64,
    first: &'a Place,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct CauseV2<'a> {
    class: Class,
    plane: Plane,
    title: &'a str,
    confidence: Confidence,
    rejected: bool,
    #[serde(rename = "for")]
    supports: &'a [Citation],
    against: &'a [Citation],
}

#[derive(Debug, Serialize)]
struct SubjectV2<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    died_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_limit_bytes: Option<u64>,
}

/// Another container of the pod that failed.
#[derive(Debug, Serialize)]
struct OtherV2<'a> {
    container: &'a str,
    class: Class,
    plane: Plane,
    confidence: Confidence,
    summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    died_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u64>,
}

/// Numbers that the trigger's and the start-up lines carry, memory in bytes.
#[derive(Debug, Serialize)]
struct Figure<'a> {
    signature: &'a str,
    place: &'a Place,
    values: &'a BTreeMap<String, Capture>,
}

impl<'a> From<&'a Report> for VerdictV2<'a> {
    fn from(r: &'a Report) -> Self {
        let v = &r.verdict;
        let s = &v.subject;
        Self {
            schema: VERDICT,
            incident: &r.name,
            verdict: Head {
                class: v.class,
                plane: v.class.plane(),
                phase: v.phase,
                confidence: v.confidence,
                title: v.class.title(),
                summary: &v.summary,
                decided_by: v.decided_by,
                runbook: runbook::link(v.class),
            },
            trigger: v.trigger.as_ref().map(trigger),
            sequence: v.sequence.iter().map(step).collect(),
            cascade: v.cascade.iter().map(collapsed).collect(),
            causes: r.causes.iter().map(cause).collect(),
            actions: &r.actions,
            missing: &v.missing,
            pressure: v.pressure.as_ref().map(pressure),
            budget: budget::json::of(&r.budget),
            subject: SubjectV2 {
                namespace: s.namespace.as_deref(),
                pod: s.pod.as_deref(),
                container: s.container.as_deref(),
                node: s.node.as_deref(),
                engine: r.facts.engine.name.as_deref(),
                engine_version: r.facts.engine.version.as_deref(),
                restarts: s.restarts,
                exit_code: s.death.as_ref().and_then(|d| d.exit_code),
                reason: s.death.as_ref().map(|d| d.reason.as_str()).filter(|r| !r.is_empty()),
                died_at: s.death.as_ref().and_then(|d| d.finished).map(|t| t.show()),
                memory_limit_bytes: s.memory_limit.map(|b| b.0),
            },
            others: v.others.iter().map(other).collect(),
            figures: figures(r),
            changes: changes(r),
            evidence: &r.files,
        }
    }
}

fn pressure(p: &Pressure) -> PressureV2<'_> {
    let readings = p.readings.iter().map(|r| ReadingV2 {
        plane: r.plane,
        level: r.level.as_str(),
        what: &r.what,
        container: r.container.as_deref(),
        used_bytes: r.bytes.map(|(used, _)| used.0),
        limit_bytes: r.bytes.map(|(_, limit)| limit.0),
        // Four digits tell a hundredth of a percent; more would be noise.
        share: (r.share * 10_000.0).round() / 10_000.0,
        time: r.stamp.map(|s| s.show()),
        place: &r.place,
        note: r.note.as_deref(),
        growth: r.growth.as_ref().map(growth),
    });
    PressureV2 { bound_by: p.bound.as_str(), readings: readings.collect(), focus: focus::of(p) }
}

fn growth(g: &Growth) -> GrowthV2<'_> {
    GrowthV2 {
        bytes_per_hour: g.per_hour.0,
        window_seconds: g.window_ms / 1000,
        samples: g.samples,
        seconds_to_limit: g.to_limit_ms / 1000,
        first: &g.first,
    }
}

fn other(o: &Beside) -> OtherV2<'_> {
    OtherV2 {
        container: &o.container,
        class: o.class,
        plane: o.class.plane(),
        confidence: o.confidence,
        summary: &o.summary,
        exit_code: o.end.exit_code,
        reason: Some(o.end.reason.as_str()).filter(|r| !r.is_empty()),
        died_at: o.end.finished.map(|t| t.show()),
        restarts: o.restarts,
    }
}

fn changes(r: &Report) -> Vec<ChangeV2<'_>> {
    let pairs =
        r.bundle.rollouts.iter().flat_map(|rollout| rollout.changes.iter().map(move |c| (rollout, c)));
    pairs
        .map(|(rollout, c)| ChangeV2 {
            workload: &rollout.workload,
            from_revision: rollout.from,
            to_revision: rollout.to,
            at: rollout.at.map(|t| t.show()),
            container: c.container.as_deref(),
            field: &c.field,
            before: c.before.as_deref(),
            after: c.after.as_deref(),
        })
        .collect()
}

/// The last of each signature that carries numbers, at most 32.
fn figures(r: &Report) -> Vec<Figure<'_>> {
    let mut last: BTreeMap<&str, Figure<'_>> = BTreeMap::new();
    for h in r.facts.hits.iter().filter(|h| !h.captures.is_empty()) {
        last.insert(&h.id, Figure { signature: &h.id, place: &h.place, values: &h.captures });
    }
    last.into_values().take(32).collect()
}

fn trigger(t: &Trigger) -> TriggerV2<'_> {
    TriggerV2 {
        text: &t.text,
        file: &t.place.file,
        line: t.place.line,
        time: t.stamp.map(|s| s.show()),
        signature: &t.signature,
    }
}

fn step(s: &Step) -> StepV2<'_> {
    StepV2 {
        class: s.class,
        plane: s.class.plane(),
        phase: s.phase,
        what: &s.what,
        trigger: s.trigger.as_ref().map(trigger),
    }
}

fn collapsed(c: &Collapsed) -> CollapsedV2<'_> {
    CollapsedV2 {
        signature: &c.signature,
        meaning: &c.meaning,
        count: c.count,
        first: &c.first,
        text: &c.text,
    }
}

fn cause(c: &Cause) -> CauseV2<'_> {
    CauseV2 {
        class: c.class,
        plane: c.class.plane(),
        title: &c.title,
        confidence: c.confidence,
        rejected: c.rejected,
        supports: &c.supports,
        against: &c.against,
    }
}

/// One report as the bare object, several as a list; pretty-printed, with a line end.
///
/// # Errors
/// When a value cannot be written as JSON, which no value here can cause.
pub fn render(reports: &[Report]) -> Result<String, serde_json::Error> {
    match reports {
        [one] => pretty(&VerdictV2::from(one)),
        many => pretty(&VerdictsV2 { schema: VERDICTS, items: many.iter().map(VerdictV2::from).collect() }),
    }
}
