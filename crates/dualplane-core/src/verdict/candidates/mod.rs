//! Candidates for the first cause: every source says what it has, with its weight and its evidence. One file a source.

mod cgroup;
mod ecc;
mod kernel;
mod log;
mod metrics;
mod series;
mod status;
pub(super) mod volume;
mod xid;

pub(super) use metrics::{oom_counter, oom_reason};

use super::{Cited, Class, Confidence, Phase, Plane, Subject, Trigger, identity};
use crate::evidence::{Bundle, Role};
use crate::facts::vram::VramOom;
use crate::facts::{Facts, Place};
use crate::knowledge::{Knowledge, Mark};
use crate::time::Stamp;

/// Which source speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Kernel log.
    Kernel,
    /// Event.
    Event,
    /// Pod status.
    Status,
    /// Counters of a cgroup.
    Cgroup,
    /// Container log.
    Log,
    /// Metrics.
    Metrics,
}

/// What a candidate proves, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A memory error or GPU fault that ended something.
    Fatal,
    /// The server goes on.
    Degraded,
    /// Only with a failure behind it.
    Suspect,
}

/// A possible first cause.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Id of the rule that decides where this is the first cause.
    pub rule: &'static str,
    /// Class.
    pub class: Class,
    /// Weight.
    pub weight: Weight,
    /// Source.
    pub from: Source,
    /// The log's role.
    pub role: Role,
    /// The process that printed it; empty where its line does not say.
    pub process: String,
    /// Phase.
    pub phase: Phase,
    /// How sure.
    pub confidence: Confidence,
    /// What happened, one sentence.
    pub what: String,
    /// The signature or parser that knows it.
    pub signature: String,
    /// Where the line is; `None` where the proof is no line.
    pub place: Option<Place>,
    /// The line.
    pub text: String,
    /// When.
    pub stamp: Option<Stamp>,
    /// The sizes of a VRAM error.
    pub vram: Option<VramOom>,
    /// The server went on serving well after it.
    pub survived: bool,
    /// Nothing at hand says that it is of this pod.
    pub untied: bool,
    /// Of a fault of a GPU: its address, and whether no program can cause it.
    pub gpu: Option<(String, bool)>,
    /// Evidence for.
    pub supports: Vec<Cited>,
    /// Evidence against.
    pub against: Vec<Cited>,
}

impl Candidate {
    /// A fatal candidate without a line of its own, to be filled in by its source.
    fn new(
        rule: &'static str,
        class: Class,
        from: Source,
        what: impl Into<String>,
        signature: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            class,
            weight: Weight::Fatal,
            from,
            role: Role::Unsaid,
            process: String::new(),
            phase: Phase::Unknown,
            confidence: Confidence::High,
            what: what.into(),
            signature: signature.into(),
            place: None,
            text: String::new(),
            stamp: None,
            vram: None,
            survived: false,
            untied: false,
            gpu: None,
            supports: Vec::new(),
            against: Vec::new(),
        }
    }

    /// Its line.
    fn at(mut self, place: &Place, text: &str, stamp: Option<Stamp>) -> Self {
        self.place = Some(place.clone());
        text.clone_into(&mut self.text);
        self.stamp = stamp;
        self
    }

    /// Its line as a trigger.
    #[must_use]
    pub fn trigger(&self) -> Option<Trigger> {
        let place = self.place.clone().filter(|p| p.line.is_some() || self.from == Source::Event)?;
        Some(Trigger {
            place,
            text: self.text.clone(),
            stamp: self.stamp,
            signature: self.signature.clone(),
            sizes: self.vram.clone(),
        })
    }
}

/// Collects the candidates of all sources.
pub(super) fn collect(
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
    subject: &Subject,
) -> Vec<Candidate> {
    let mut all = Vec::new();
    let global = super::oom_records::relevant(bundle, facts, subject);
    for (oom, sure) in &global {
        all.push(kernel::oom(oom, *sure, subject, facts));
    }
    if let Some(c) = status::oom_killed(bundle, facts, subject, &global) {
        all.push(c);
    }
    for hit in &facts.object_hits {
        status::object(hit, bundle, facts, subject, &mut all);
        all.extend(volume::evicted(hit, bundle, subject));
    }
    xid::collect(bundle, facts, knowledge, subject, &mut all);
    let own = identity::own_gpus(bundle, facts, subject);
    let without_gpu = own.is_empty() && identity::without_gpu(bundle, facts, subject);
    for hit in &facts.hits {
        let weight = match hit.mark {
            Mark::Fatal => Weight::Fatal,
            Mark::Degraded => Weight::Degraded,
            Mark::Suspect => Weight::Suspect,
            _ => continue,
        };
        let driver = hit.id.starts_with("kernel.") || hit.text.contains("NVRM: ");
        let of_gpu = || hit.class.is_some_and(|c| matches!(c.plane(), Plane::Gpu | Plane::Hardware));
        if driver && (without_gpu && of_gpu() || identity::other_line(&hit.text, &own, bundle, subject)) {
            continue;
        }
        let other = identity::other_container(hit, bundle, subject);
        if let Some(class) = hit.class.filter(|_| !other) {
            let weight = log::weigh_recovery(hit, weight, facts);
            all.push(log::hit(hit, class, weight, bundle, facts));
        }
    }
    for hit in facts.hits.iter().filter(|h| h.mark == Mark::Failure) {
        all.extend(volume::full(hit, bundle));
    }
    metrics::preemptions(bundle, subject, facts, &mut all);
    metrics::oom_killed(bundle, subject, facts, &mut all);
    metrics::xids(bundle, knowledge, facts, subject, &mut all);
    ecc::counters(bundle, facts, &mut all);
    all.extend(cgroup::oom_killed(bundle, subject, facts));
    all.extend(series::at_limit(bundle, subject, facts));
    all
}

/// What the server was doing when the log of the dead instance ended.
pub(super) fn end_phase(facts: &Facts) -> Phase {
    let mut logs = facts.logs.iter().filter(|l| !l.kernel && l.phase != Phase::Unknown);
    logs.clone()
        .find(|l| l.role == Role::Previous)
        .or_else(|| logs.next())
        .map_or_else(|| noticed(facts), |l| l.phase)
}

/// Without a line of the server's own, those who notice its end may tell in which phase it came.
fn noticed(facts: &Facts) -> Phase {
    let notices = facts.hits.iter().filter(|h| !h.kernel && matches!(h.mark, Mark::Cascade | Mark::Death));
    notices.map(|h| h.phase).find(|p| *p != Phase::Unknown).unwrap_or(Phase::Unknown)
}

#[cfg(test)]
pub(super) mod testing {
    use super::{Candidate, Class, Source};

    /// A fatal candidate of a class and source, without a line.
    pub(in crate::verdict) fn candidate(class: Class, from: Source) -> Candidate {
        Candidate::new("test", class, from, "", "")
    }
}
