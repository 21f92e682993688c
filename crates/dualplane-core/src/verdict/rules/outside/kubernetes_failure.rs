//! An event or status text says what ended it: a probe, an eviction for another resource, preemption.

use super::{
    Beats, FAILURE, Judged, LIFE, NOTHING, Rule, SIGNAL, SYMPTOM, Stage, UNEXPLAINED, can_be_stopped,
    decided, unmet,
};
use crate::evidence::Event;
use crate::facts::Hit;
use crate::knowledge::Mark;
use crate::verdict::candidates::volume;
use crate::verdict::case::Case;
use crate::verdict::proof::{Log, Status};
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "kubernetes_failure",
    stage: Stage::Outside,
    classes: &[Class::NotMemory],
    when: "an event or status message of this pod names a cause other than memory (a probe, an eviction \
    for another resource, preemption), and the exit code matches a stop",
    near_miss: "a failed probe with an exit code chosen by the program; an event of another pod or run",
    beats: &[
        Beats::rule("disruption", "the event says what the condition only sums up"),
        Beats::rule("pod_deleted", "a pod that is evicted or preempted is deleted for that"),
        Beats::rule("container_stopped", "the stop is carried out for that reason"),
        Beats::rule("runtime_could_not_start", "the event is of the end that is judged"),
        SIGNAL,
        SYMPTOM,
        FAILURE,
        UNEXPLAINED,
        LIFE,
        NOTHING,
    ],
    source: "kubelet events and status texts (knowledge/kubelet.toml)",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let failure = |h: &&Hit| (h.mark == Mark::Failure || full_disk(h, case).is_some()) && case.of_subject(h);
    let hit = case
        .facts
        .object_hits
        .iter()
        .find(failure)
        .ok_or_else(|| unmet("no event or status message of this pod names a cause other than memory"))?;
    // A probe kill explains 137 and 143, not an exit code that the program chose. An evicted pod is ended in any case.
    let evicted = case.pod().is_some_and(|p| p.reason.is_some());
    if !evicted && !can_be_stopped(case) {
        return Err(unmet("the exit code was chosen by the program itself"));
    }
    let mut supports = vec![Cited::of(crate::text::shorten(&hit.text, 240), hit)];
    if let Some(d) = case.death() {
        supports.push(Cited::at(Status::EndedOtherwise(Box::new(d.clone())), &case.pod_place()));
    }
    let phase = case.phase_or_end(hit.phase);
    // A kill of several runs, and nothing tells which of them is the one at hand.
    let repeated = |e: &Event| matches!(e.reason.as_str(), "Killing" | "FailedPostStartHook") && e.count > 1;
    let any_run = case.death().is_none() && hit.event(case.bundle).is_some_and(repeated);
    let doubt = hit
        .doubt
        .as_ref()
        .filter(|_| !case.facts.has_server_log() && case.subject.refused_probe(case.bundle).is_none());
    let confidence = if any_run || doubt.is_some() { Confidence::Medium } else { Confidence::High };
    // The message leaves open where the volume lies; the pod does not.
    let summary = match full_disk(hit, case) {
        Some(volume) => format!(
            "the pod was evicted for the volume {volume}, which grew past its size limit: it lies on a disk, not in host RAM"
        ),
        None => hit.meaning.clone(),
    };
    let mut d = decided(Class::NotMemory, phase, confidence, summary, supports);
    d.against.extend(doubt.map(|d| Cited::plain(Log::Doubt(d.clone()))));
    Ok(d)
}

/// The emptyDir that grew past its size limit, where the pod shows that it lies on a disk.
fn full_disk(hit: &Hit, case: &Case<'_>) -> Option<String> {
    let volume = (hit.id == volume::EMPTY_DIR).then(|| hit.word("volume")).flatten()?;
    let on_disk = !case.pod()?.volume(&volume)?.memory_medium;
    on_disk.then_some(volume)
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::Confidence;
    use crate::verdict::rules::testing::{File, event, holds, judged, log, near_miss, pod};

    const KILLING: &str = "Container vllm failed startup probe, will be restarted";

    /// Why the probe failed stands in the server's log. Without it a dead engine may be behind it, but not where the server
    /// itself refused the probe.
    #[test]
    fn a_failed_probe_alone_leaves_open_why() {
        let dead = pod(137, "Error");
        let unhealthy = |code: u16| {
            event("Unhealthy", &format!("Liveness probe failed: HTTP probe failed with statuscode: {code}"))
        };
        let sure = |files: Vec<File>| judged(&files).confidence == Confidence::High;
        assert!(!sure(vec![dead.clone(), event("Killing", KILLING)]));
        assert!(!sure(vec![dead.clone(), event("Killing", KILLING), unhealthy(503)]));
        assert!(sure(vec![dead.clone(), event("Killing", KILLING), unhealthy(404)]));
        assert!(sure(vec![
            dead,
            event("Killing", KILLING),
            log("INFO: Uvicorn running on http://0.0.0.0:8000\n")
        ]));
    }

    #[test]
    fn a_probe_kill_is_the_end() {
        holds(&RULE, &[pod(137, "Error"), event("Killing", KILLING)]);
    }

    #[test]
    fn the_program_s_own_exit_code_is_not() {
        near_miss(&RULE, "exit_code", &[pod(1, "Error"), event("Killing", KILLING)]);
    }
}
