//! Verdict: which plane failed, which line came first, what followed, how sure that is, what is missing.
//!
//! The order of judgement: candidates are collected from every source ([`candidates`]), VRAM errors among them refined by
//! arithmetic ([`vram`]), and put into causal order (`order`). All this is a `case`, and the table of [`rules`] decides it:
//! the first rule that holds.

mod beside;
pub mod busy;
pub mod candidates;
mod case;
mod causes;
mod chain;
mod churn;
mod cited;
mod course;
mod deaths;
mod gpus;
pub mod heat;
mod identity;
mod instance;
mod matrix;
mod memory;
mod missing;
mod on_the_host;
mod oom_records;
pub mod pressure;
pub mod proof;
mod ranks;
mod server_runs;
pub use causes::{bearing_changes, memory_limit};
use dualplane_base::order::Order as _;
pub use gpus::faulty_card;
pub use memory::cgroup_of_the_dead;
pub use missing::Names;
pub mod rules;
mod series;
mod start_memory;
mod ties;
pub mod timeline;
pub mod vram;
pub mod weighing;
mod why_not;

pub use beside::Beside;
use busy::Busy;
pub use candidates::{Candidate, Source};
use case::Case;
pub use churn::{Churn, churn};
pub use cited::Cited;
pub use course::{Course, course};
pub use deaths::Subject;
pub(crate) use dualplane_base::{Class, Confidence, Phase, Plane};
use pressure::{Level, Pressure};
use rules::Ruled;
pub use why_not::why_not;

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::{Bundle, Gap, Pod, Termination};
use crate::facts::vram::VramOom;
use crate::facts::{Facts, Hit, KEPT_PER_SIGNATURE, Place};
use crate::knowledge::{Knowledge, Mark};
use crate::time::Stamp;

/// Clocks of two logs agree this well.
const BEFORE_MS: i64 = 60_000;

/// The line that was the first memory error in cause.
#[derive(Debug, Clone)]
pub struct Trigger {
    /// Where.
    pub place: Place,
    /// The exact line (for an event: its exact message).
    pub text: String,
    /// When.
    pub stamp: Option<Stamp>,
    /// The signature or parser that knows it.
    pub signature: String,
    /// The sizes of a VRAM error, in its line or in those below it.
    pub sizes: Option<VramOom>,
}

impl Trigger {
    /// The VRAM error with its sizes, where it is one.
    #[must_use]
    pub fn vram(&self) -> Option<VramOom> {
        self.sizes.clone()
    }
}

/// One step of what happened, in causal order.
#[derive(Debug, Clone)]
pub struct Step {
    /// Class.
    pub class: Class,
    /// Phase.
    pub phase: Phase,
    /// What happened, one sentence.
    pub what: String,
    /// Its line, where it is one.
    pub trigger: Option<Trigger>,
    /// It followed from the first error; else it happened before or beside it.
    pub follows: bool,
}

/// Lines that only notice the failure, collapsed.
#[derive(Debug, Clone)]
pub struct Collapsed {
    /// Signature.
    pub signature: String,
    /// Its sentence.
    pub meaning: String,
    /// How often.
    pub count: u64,
    /// The first of them.
    pub first: Place,
    /// Its text.
    pub text: String,
}

/// A possible cause with its evidence.
#[derive(Debug, Clone)]
pub struct Cause {
    /// Class that it would be.
    pub class: Class,
    /// One sentence.
    pub title: String,
    /// How likely, from the evidence.
    pub confidence: Confidence,
    /// The judge ruled it out or found too little for it.
    pub rejected: bool,
    /// Evidence for.
    pub supports: Vec<Cited>,
    /// Evidence against.
    pub against: Vec<Cited>,
}

impl Cause {
    /// That the kernel did not kill it over host RAM, with the evidence.
    fn no_kill(against: Vec<Cited>) -> Self {
        Self {
            class: Class::HostOomKilled,
            title: "the kernel killed it for exceeding host RAM".into(),
            confidence: Confidence::Low,
            rejected: true,
            supports: Vec::new(),
            against,
        }
    }
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Primary class.
    pub class: Class,
    /// Phase.
    pub phase: Phase,
    /// How sure.
    pub confidence: Confidence,
    /// The first memory error, where the proof is a line.
    pub trigger: Option<Trigger>,
    /// One sentence that says it all.
    pub summary: String,
    /// What happened, in causal order, the primary class among it.
    pub sequence: Vec<Step>,
    /// What only noticed.
    pub cascade: Vec<Collapsed>,
    /// Ranked causes, the likeliest first; rejected ones last.
    pub causes: Vec<Cause>,
    /// What is missing and how to get it.
    pub missing: Vec<Gap>,
    /// Id of the rule that decided.
    pub decided_by: &'static str,
    /// How every rule went, in the order of the table.
    pub trace: Vec<Ruled>,
    /// Ids of the weighing rules that added to it.
    pub weighed: Vec<&'static str>,
    /// How the server that lives stands against its limits, where it was not memory that ended it.
    pub pressure: Option<Pressure>,
    /// How busy a server that lives is, where its figures call for a reading.
    pub busy: Option<Busy>,
    /// Whose death this is.
    pub subject: Subject,
    /// Other containers of the pod that failed, each with its own verdict.
    pub others: Vec<Beside>,
}

impl Verdict {
    /// Whether what decided leaves open what stands behind it: another class is not excluded.
    #[must_use]
    pub fn doubted(&self) -> bool {
        self.causes.first().is_some_and(|c| !c.rejected && c.against.iter().any(Cited::is_doubt))
    }
}

/// Judges one incident.
#[must_use]
pub fn judge(bundle: &Bundle, facts: &Facts, knowledge: &Knowledge) -> Verdict {
    let mut verdict = judge_one(bundle, facts, knowledge);
    verdict.others = beside::others(bundle, &verdict.subject, knowledge);
    verdict
}

/// Judges the end of one container.
fn judge_one(bundle: &Bundle, facts: &Facts, knowledge: &Knowledge) -> Verdict {
    let case = Case::new(bundle, facts, knowledge);
    let (mut decided, trace) = rules::decide(&case);
    if decided.phase == Phase::Unknown {
        decided.phase = case.end_phase();
    }
    let weighed = weighing::weigh(&case, &mut decided);
    // Each class is one step, the one that is first in cause.
    let mut seen = BTreeSet::new();
    decided.sequence.retain(|s| seen.insert(s.class));
    let tells = pressure_tells(&case, &decided);
    let subject = &case.subject;
    let mut causes = causes::rank(bundle, facts, &decided, &case.candidates, subject);
    // What is beneath the verdict stands behind it; what was ruled out, at the end.
    let (holds, against): (Vec<Cause>, Vec<Cause>) =
        matrix::causes(&case, &decided).into_iter().partition(|c| !c.rejected);
    causes.splice(1..1, holds);
    causes.extend(against);
    let nothing_ended = decided.class.plane() == Plane::None && case.death().is_none_or(Termination::clean);
    let busy = nothing_ended.then(|| busy::of(&case)).flatten();
    causes.splice(1..1, busy.iter().map(Busy::cause));
    causes.extend(identity::passed_over(bundle, facts, knowledge, subject));
    let mut missing = match case.pressure.as_ref().filter(|_| decided.by == rules::UNDER_PRESSURE) {
        Some(p) => pressure::missing::list(bundle, facts, p, subject),
        None => missing::list(bundle, facts, &decided, subject),
    };
    missing.extend(busy.iter().flat_map(|b| b.missing(&case)));
    if let Some(unit) = subject.pod_of(bundle).and_then(Pod::unit) {
        missing.iter_mut().for_each(|gap| on_the_host::told(gap, unit));
    }
    Verdict {
        class: decided.class,
        phase: decided.phase,
        confidence: decided.confidence,
        cascade: cascade(facts, decided.trigger.as_ref()),
        trigger: decided.trigger,
        summary: decided.summary,
        sequence: decided.sequence,
        causes,
        missing,
        decided_by: decided.by,
        trace,
        weighed,
        pressure: case.pressure.filter(|_| tells),
        busy,
        subject: case.subject,
        others: Vec::new(),
    }
}

/// Whether the figures of a living server belong into the verdict. What memory ended is told by its own numbers; beside
/// another end the container that runs now is looked at, which only an object shows.
fn pressure_tells(case: &Case<'_>, decided: &Decided) -> bool {
    let stage = rules::rule(decided.by).map(|r| r.stage);
    let symptom = stage == Some(rules::Stage::Symptom) && case.death().is_none();
    let goes_on = case.pod().is_some() || stage >= Some(rules::Stage::Pressure);
    // A log without a word of trouble needs no figures that say the same.
    let quiet = case.pod().is_none() && case.facts.has_life();
    let normal = case.pressure.as_ref().is_some_and(|p| p.readings.iter().all(|r| r.level == Level::Normal));
    (symptom || decided.class.plane() == Plane::None && goes_on) && !(quiet && normal)
}

/// What the judge settled on, before causes are ranked.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    /// Id of the rule.
    pub by: &'static str,
    pub class: Class,
    pub phase: Phase,
    pub confidence: Confidence,
    pub trigger: Option<Trigger>,
    pub summary: String,
    pub sequence: Vec<Step>,
    pub supports: Vec<Cited>,
    pub against: Vec<Cited>,
}

impl Decided {
    /// Whether what decided leaves open what stands behind it.
    fn doubted(&self) -> bool {
        self.against.iter().any(Cited::is_doubt)
    }
}

/// Wrappers and fallout by signature, most frequent first: what stands before the first error did not come of it.
fn cascade(facts: &Facts, first: Option<&Trigger>) -> Vec<Collapsed> {
    let before = |h: &Hit| {
        first.is_some_and(|t| {
            let apart = h.stamp.zip(t.stamp).and_then(|(h, t)| h.ms_until(t));
            let same = h.place.file == t.place.file;
            same && h.place.line < t.place.line || !same && apart.is_some_and(|ms| ms > BEFORE_MS)
        })
    };
    let mut by_id: BTreeMap<&str, Collapsed> = BTreeMap::new();
    let mut seen: BTreeSet<&Place> = BTreeSet::new();
    // Several signatures may know one line; it is fallout once.
    for hit in facts.hits.iter().filter(|h| h.mark == Mark::Cascade && !before(h) && seen.insert(&h.place)) {
        // The first hit of a file knows how many were not kept.
        let count = 1 + hit.count.saturating_sub(KEPT_PER_SIGNATURE as u64 + 1);
        by_id.entry(&hit.id).and_modify(|c| c.count += count).or_insert_with(|| Collapsed {
            signature: hit.id.clone(),
            meaning: hit.meaning.clone(),
            count,
            first: hit.place.clone(),
            text: hit.text.clone(),
        });
    }
    let mut out: Vec<Collapsed> = by_id.into_values().collect();
    out.order_by(|a, b| b.count.cmp(&a.count).then_with(|| a.signature.cmp(&b.signature)));
    out
}
