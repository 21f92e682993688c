//! Ends that came from outside the process: probes, evictions, deletion, an orderly stop, a runtime that could not start it.

use super::candidates::end_phase;
use super::otherwise::decided;
use super::{Cited, Class, Confidence, Decided, Phase, Subject};
use crate::evidence::Bundle;
use crate::facts::{Facts, Hit, Place};
use crate::knowledge::Mark;

/// The kubelet or somebody else stopped it: probes, eviction for another resource, preemption, delete, shutdown.
/// `survived`: the log's one memory error is known not to have been the end.
pub(super) fn ended_from_outside(
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
    survived: bool,
) -> Option<Decided> {
    let killed = subject.death.as_ref().is_none_or(|d| matches!(d.exit_code, 137 | 143 | 0 | 2 | 130 | 255));
    let evicted = subject.pod_of(bundle).is_some_and(|p| p.reason.is_some());
    let hit =
        facts.object_hits.iter().filter(|h| h.mark == Mark::Failure && of_subject(h, bundle, subject)).find(
            |h| {
                // A probe kill explains 137 and 143, not an exit code that the program chose.
                evicted || killed || !h.text.contains("failed")
            },
        );
    if let Some(hit) = hit.filter(|_| killed || evicted) {
        let mut supports = vec![Cited::at(crate::text::shorten(&hit.text, 240), &hit.place)];
        if let Some(d) = &subject.death {
            let file = subject.file(bundle);
            supports.push(Cited::at(
                format!("exit code {} with reason {}, not OOMKilled", d.exit_code, d.reason),
                &Place { file, line: None },
            ));
        }
        return Some(decided(
            Class::NotMemory,
            end_phase(facts),
            Confidence::High,
            hit.meaning.clone(),
            supports,
        ));
    }
    let place = Place { file: subject.file(bundle), line: None };
    let pod = subject.pod_of(bundle);
    if let Some(c) =
        pod.into_iter().flat_map(|p| &p.conditions).find(|c| c.kind == "DisruptionTarget" && c.holds)
        && !c.message.contains("resource: memory")
    {
        let text = format!("condition DisruptionTarget, reason {}: {}", c.reason, c.message);
        return Some(decided(
            Class::NotMemory,
            end_phase(facts),
            Confidence::High,
            format!("the pod was ended from outside ({})", c.reason),
            vec![Cited::at(text, &place)],
        ));
    }
    let stopping = facts
        .object_hits
        .iter()
        .find(|h| h.text.starts_with("Stopping container") && of_subject(h, bundle, subject));
    if subject.death.as_ref().is_none_or(|d| matches!(d.exit_code, 137 | 143) || survived && d.clean()) {
        if pod.is_some_and(|p| p.deleting) {
            let text =
                "the pod has a deletionTimestamp: somebody deleted it, and the grace period ends in SIGKILL";
            return Some(decided(
                Class::NotMemory,
                end_phase(facts),
                Confidence::High,
                "the pod was deleted".into(),
                vec![Cited::at(text, &place)],
            ));
        }
        if let Some(hit) = stopping.filter(|_| subject.death.is_some() || survived) {
            let supports = vec![Cited::at(hit.text.clone(), &hit.place)];
            let summary = "the kubelet was asked to stop the container; past the grace period that ends in SIGKILL (137)";
            return Some(decided(
                Class::NotMemory,
                end_phase(facts),
                Confidence::Medium,
                summary.into(),
                supports,
            ));
        }
    }
    None
}

/// The status of the dead instance itself says why the runtime could not start it.
pub(super) fn did_not_start(facts: &Facts, bundle: &Bundle, subject: &Subject) -> Option<Decided> {
    let death = subject.death.as_ref().filter(|d| !d.message.is_empty())?;
    let said = |h: &&Hit| h.mark == Mark::Failure && h.event(bundle).is_none() && h.text == death.message;
    let hit = facts.object_hits.iter().find(said)?;
    let text = format!("{}: {}", death.reason, crate::text::shorten(&hit.text, 240));
    let supports = vec![Cited::at(text, &hit.place)];
    Some(decided(Class::NotMemory, Phase::Load, Confidence::High, hit.meaning.clone(), supports))
}

/// In a crash loop the kubelet soon holds events back (25 of a pod at once, then one in five minutes), so that the last
/// kill may have none. Where those before it were probe kills of the same container, it is most likely one more.
pub(super) fn probe_loop(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Option<Decided> {
    const TIMES: u64 = 2;
    let death = subject.death.as_ref().filter(|d| d.exit_code == 137 && !d.oom_killed())?;
    let restarts = subject.restarts?;
    let killing = bundle.events.iter().find(|e| {
        e.reason == "Killing"
            && (e.message.contains("failed liveness probe") || e.message.contains("failed startup probe"))
            && e.count >= TIMES
            && subject.is_of(e, bundle)
    })?;
    let place = Place { file: killing.file.clone(), line: killing.line };
    let supports = vec![
        Cited::at(format!("{} ({} times, of {restarts} restarts)", killing.message, killing.count), &place),
        Cited::at(
            format!("exit code {} with reason {}, not OOMKilled", death.exit_code, death.reason),
            &Place { file: subject.file(bundle), line: None },
        ),
    ];
    let summary = "the kubelet kills the container again and again because its probe fails";
    let mut d = decided(Class::NotMemory, end_phase(facts), Confidence::Medium, summary.into(), supports);
    d.against.push(Cited::plain(
        "no event stands near the last end itself: in a loop the kubelet holds events back",
    ));
    Some(d)
}

/// The log ends in an orderly stop, and nothing failed since the server answered last.
pub(super) fn stopped_in_order(facts: &Facts) -> Option<Decided> {
    let log = facts.logs.iter().find(|l| !l.kernel && l.last_served.is_some())?;
    let since = |p: &Place| p.file == log.file && p.line > log.last_served;
    let failed = facts.hits.iter().any(|h| {
        since(&h.place) && matches!(h.mark, Mark::Fatal | Mark::Death | Mark::Failure | Mark::Suspect)
    });
    if failed || log.alarm.as_ref().is_some_and(|(line, _)| Some(*line) > log.last_served) {
        return None;
    }
    if facts.exceptions.iter().any(|e| since(&e.place)) {
        return None;
    }
    let stop = facts.hits.iter().find(|h| since(&h.place) && h.id == "host.stop_request")?;
    let supports = vec![Cited::at(crate::text::shorten(stop.text.trim(), 240), &stop.place)];
    let summary = "the server was stopped in order; nothing failed since it answered its last request";
    Some(decided(Class::NotMemory, end_phase(facts), Confidence::Medium, summary.into(), supports))
}

/// An event or status text of this pod (or of no pod in particular).
fn of_subject(hit: &Hit, bundle: &Bundle, subject: &Subject) -> bool {
    hit.event(bundle).is_none_or(|e| subject.concerned_by(e, bundle))
}
