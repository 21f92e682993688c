//! One incident as the rules see it: the evidence, whose death it is, what may have caused it, in causal order.

use super::candidates::{self, Candidate};
use super::pressure::{self, Pressure};
use super::rules::{failure, symptoms};
use super::{Phase, Subject, chain, deaths, identity, oom_records, ties};
use crate::evidence::{Bundle, Pod, Termination};
use crate::facts::{Facts, Hit, LogSummary, Place};
use crate::knowledge::{Knowledge, Mark};

/// What every rule is asked about.
pub(super) struct Case<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) facts: &'a Facts,
    /// Whose death is judged.
    pub(super) subject: Subject,
    /// What may have been the first cause, from every source.
    pub(super) candidates: Vec<Candidate>,
    /// Those that ended something, the first in cause first, each class once.
    pub(super) chain: Vec<Candidate>,
    /// How what lives stands against its limits.
    pub(super) pressure: Option<Pressure>,
}

impl<'a> Case<'a> {
    pub(super) fn new(bundle: &'a Bundle, facts: &'a Facts, knowledge: &Knowledge) -> Self {
        let mut subject = deaths::subject(bundle, facts);
        subject.kill = oom_records::own(bundle, facts, &subject);
        let mut candidates = candidates::collect(bundle, facts, knowledge, &subject);
        ties::mark(&mut candidates, bundle, facts, &subject);
        let chain = chain::causal(&candidates, facts, &subject);
        let pressure = pressure::of(bundle, facts, &subject);
        let mut case = Self { bundle, facts, subject, candidates, chain, pressure };
        // A log that explains its own end goes before a record that may be anybody's.
        if case.chain.first().is_some_and(|c| c.untied) && failure::explains(&case).is_some() {
            case.chain.retain(|c| !c.untied);
        }
        case
    }

    /// The end that is judged, as the API tells it.
    pub(super) fn death(&self) -> Option<&Termination> {
        self.subject.death.as_ref()
    }

    pub(super) fn exit_code(&self) -> Option<i64> {
        self.death().and_then(|d| d.exit_code)
    }

    pub(super) fn pod(&self) -> Option<&'a Pod> {
        self.subject.pod_of(self.bundle)
    }

    /// The object that tells of the pod, as a place.
    pub(super) fn pod_place(&self) -> Place {
        Place { file: self.subject.file(self.bundle), line: None }
    }

    /// What the server was doing when the dead instance's log ended.
    pub(super) fn end_phase(&self) -> Phase {
        candidates::end_phase(self.facts)
    }

    /// A line's own phase, or that of the end.
    pub(super) fn phase_or_end(&self, own: Phase) -> Phase {
        if own == Phase::Unknown { self.end_phase() } else { own }
    }

    /// An event or status text of this pod (or of no pod in particular).
    pub(super) fn of_subject(&self, hit: &Hit) -> bool {
        hit.event(self.bundle).is_none_or(|e| self.subject.concerned_by(e, self.bundle))
    }

    /// Whether a line may tell of this end. A kernel line that names a process nobody knows is of this pod only where the
    /// container ended as the line says, and when it says it: a node runs many processes.
    pub(super) fn may_tell_of_end(&self, hit: &Hit) -> bool {
        const NEAR_MS: i64 = 60 * 1000;
        if identity::other_container(hit, self.bundle, &self.subject) {
            return false;
        }
        let named = hit.of_kernel() && hit.pid().is_some() && !self.own_pid(hit);
        if !named || self.pod().is_none() {
            return true;
        }
        let Some(death) = self.death() else { return false };
        let apart = hit.stamp.zip(death.finished).and_then(|(at, end)| at.without_zone(end).ms_until(end));
        // An invalid access that nobody handles ends the process by SIGSEGV: who aborted, or was killed, did not do it.
        let access = matches!(hit.id.as_str(), "kernel.segfault" | "kernel.general_protection_fault");
        let crashed = death.exit_code.is_some_and(|c| c == 139 || !access && matches!(c, 132..=136 | 159));
        crashed && apart.is_none_or(|ms| ms.abs() <= NEAR_MS)
    }

    /// The line's process was listed as one of the container's.
    fn own_pid(&self, hit: &Hit) -> bool {
        let listed = self.bundle.processes.as_ref();
        hit.pid().is_some_and(|pid| listed.is_some_and(|l| l.pids.contains(&pid)))
    }

    /// The gravest error that the server went on after; of use where nothing fatal stands.
    pub(super) fn symptom(&self) -> Option<&Candidate> {
        symptoms::first(self)
    }

    /// Whether anything in a log fails behind this line.
    pub(super) fn failed_since(&self, log: &LogSummary, line: Option<u64>) -> bool {
        let since = |p: &Place| p.file == log.file && p.line > line;
        let ends = |m: Mark| matches!(m, Mark::Fatal | Mark::Death | Mark::Failure | Mark::Suspect);
        self.facts.hits.iter().any(|h| since(&h.place) && ends(h.mark))
            || log.alarm.as_ref().is_some_and(|(alarm, _)| Some(*alarm) > line)
            || self.facts.exceptions.iter().any(|e| since(&e.place))
    }

    /// The server came up or answered behind this line of its log: what the line says did not end it.
    pub(super) fn outlived(&self, place: &Place) -> bool {
        self.facts
            .logs
            .iter()
            .any(|l| l.file == place.file && place.line.is_some() && l.last_ready > place.line)
    }

    /// The log's one memory error is known not to have been the end.
    pub(super) fn survived(&self) -> bool {
        self.symptom().is_some_and(|c| c.survived)
    }
}
