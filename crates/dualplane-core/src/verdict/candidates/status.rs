//! What Kubernetes says: container status, events, pod status.

use super::{Candidate, Source, Weight, end_phase};
use crate::evidence::Bundle;
use crate::facts::{Constraint, Facts, Hit, OomRecord, Place};
use crate::knowledge::Mark;
use crate::verdict::proof;
use crate::verdict::rules::first;
use crate::verdict::{Cited, Class, Confidence, Phase, Subject};

/// `reason: OOMKilled`: some process of the container was OOM-killed during its life.
pub(super) fn oom_killed(
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
    ooms: &[(&OomRecord, Confidence)],
) -> Option<Candidate> {
    let death = subject.death.as_ref().filter(|d| d.oom_killed())?;
    let pod = subject.pod_of(bundle)?;
    let place = Place { file: pod.file.clone(), line: None };
    let name = match &subject.container {
        Some(name) => format!("container {}", crate::text::name(name)),
        None => "the container".to_owned(),
    };
    let killed =
        proof::Status::OomKilled { container: subject.container.clone(), exit_code: death.exit_code };
    let mut supports = vec![Cited::at(killed, &place)];
    let mut against = Vec::new();
    // A row or cut-out without a code still has the reason, which only the runtime gives.
    let other = death.exit_code.filter(|c| *c != 137);
    let mut confidence = if other.is_none() { Confidence::High } else { Confidence::Medium };
    if let Some(code) = other {
        against.push(Cited::at(proof::Status::OtherExitCode(code), &place));
    }
    if death.blurred {
        confidence = Confidence::Low;
        against.push(Cited::at(proof::Status::Blurred, &place));
    }
    let limit = subject.memory_limit;
    let node_oom = ooms.iter().any(|(o, _)| o.constraint == Constraint::Global);
    let system_oom = bundle.events.iter().find(|e| e.reason == "SystemOOM" && touches(e, subject));
    // Without a limit on the container (or its pod) no cgroup of its own can be exceeded.
    let class = if node_oom || limit.is_none() && system_oom.is_some() {
        Class::HostNodeOom
    } else if limit.is_none() && pod.whole() && pod.containers.iter().all(|c| c.memory_limit.is_none()) {
        confidence = Confidence::Medium;
        against.push(Cited::at(proof::Status::NoMemoryLimit, &place));
        Class::HostNodeOom
    } else {
        Class::HostOomKilled
    };
    if let Some(limit) = limit {
        supports.push(Cited::at(proof::Status::MemoryLimit(limit), &place));
    }
    if let Some(e) = system_oom.filter(|_| class == Class::HostOomKilled) {
        let cite = Place { file: e.file.clone(), line: e.line };
        against.push(Cited::at(proof::Status::SystemOom, &cite));
        confidence = Confidence::Medium;
    }
    let at = limit.map_or(String::new(), |l| format!(" at its memory limit of {}", l.k8s()));
    let what = match class {
        Class::HostNodeOom => {
            format!("{name} was OOM-killed without a memory limit of its own: the node was out of RAM")
        }
        _ => format!("{name} was OOM-killed{at}"),
    };
    let mut c =
        Candidate::new(first::oom_killed_status::ID, class, Source::Status, what, "kubernetes.oom_killed")
            .at(&place, "", death.finished);
    c.confidence = confidence;
    // The runtime's counter keeps a child's kill of hours ago: an end that was asked for is not of it. With the
    // kernel's record the time of the kill is known and speaks for itself.
    if death.ended_with(143) && ooms.is_empty() && asked_to_stop(bundle, subject) {
        c.weight = Weight::Degraded;
    }
    c.phase = end_phase(facts);
    c.supports = supports;
    c.against = against;
    Some(c)
}

/// Somebody deleted the pod, or had the kubelet stop the container.
fn asked_to_stop(bundle: &Bundle, subject: &Subject) -> bool {
    let ended = subject.death.as_ref().and_then(|d| d.finished);
    subject.pod_of(bundle).is_some_and(|p| p.deleting && !ended.is_some_and(|end| p.deleted_after(end)))
        || bundle
            .events
            .iter()
            .any(|e| e.message.starts_with("Stopping container") && subject.concerned_by(e, bundle))
}

pub(super) fn object(hit: &Hit, bundle: &Bundle, facts: &Facts, subject: &Subject, all: &mut Vec<Candidate>) {
    let (Mark::Fatal | Mark::Degraded, Some(class)) = (hit.mark, hit.class) else { return };
    // Events of other pods say nothing about this one; events of the node do.
    let event = hit.event(bundle);
    let from = if event.is_some() { Source::Event } else { Source::Status };
    if let Some(e) = event.filter(|_| subject.pod.is_some()) {
        if !subject.concerned_by(e, bundle) {
            return;
        }
        if !touches(e, subject) {
            return;
        }
    }
    let rule = match class {
        Class::HostAllocFailure => first::start_refused::ID,
        _ => first::kubernetes_oom_event::ID,
    };
    let mut c = Candidate::new(rule, class, from, hit.meaning.clone(), hit.id.clone())
        .at(&hit.place, &hit.text, hit.stamp);
    c.weight = if hit.mark == Mark::Fatal { Weight::Fatal } else { Weight::Degraded };
    c.phase = if hit.phase == Phase::Unknown { end_phase(facts) } else { hit.phase };
    c.supports = vec![Cited::of(crate::text::shorten(&hit.text, 240), hit)];
    all.push(c);
}

/// A node's distress counts where it touches this pod's death: its node, and near in time.
fn touches(event: &crate::evidence::Event, subject: &Subject) -> bool {
    if event.object.0 != "Node" {
        return true;
    }
    let elsewhere = |n: &String| !n.is_empty() && !event.object.1.is_empty() && *n != event.object.1;
    !subject.node.as_ref().is_some_and(elsewhere) && node_event_matters(event, subject)
}

/// A node-level event without the death of this pod near it is somebody else's trouble.
fn node_event_matters(event: &crate::evidence::Event, subject: &Subject) -> bool {
    const NEAR_MS: i64 = 5 * 60 * 1000;
    match (event.last.or(event.first), subject.death.as_ref().and_then(|d| d.finished)) {
        (Some(at), Some(died)) => at.ms_until(died).is_none_or(|ms| ms.abs() <= NEAR_MS),
        (_, None) => subject.death.is_none(),
        _ => true,
    }
}
