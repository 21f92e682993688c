//! Somebody deleted the pod: the grace period ends in SIGKILL.

use super::{
    Beats, FAILURE, Judged, LIFE, NOTHING, Rule, SIGNAL, SYMPTOM, Stage, UNEXPLAINED, decided, fits_a_stop,
    unmet,
};
use crate::verdict::case::Case;
use crate::verdict::proof::Status;
use crate::verdict::{Cited, Class, Confidence};

pub(in crate::verdict) const RULE: Rule = Rule {
    id: "pod_deleted",
    stage: Stage::Outside,
    classes: &[Class::NotMemory],
    when: "the pod has a deletionTimestamp, and the exit code matches a stop (137, 143)",
    near_miss: "a crash in a pod that is deleted afterwards",
    beats: &[
        Beats::rule("container_stopped", "the container is stopped because the pod was deleted"),
        SIGNAL,
        SYMPTOM,
        FAILURE,
        UNEXPLAINED,
        LIFE,
        NOTHING,
    ],
    source: "Kubernetes pod lifecycle: termination of pods",
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    if !case.pod().is_some_and(|p| p.deleting) {
        return Err(unmet("the pod has no deletionTimestamp"));
    }
    if !fits_a_stop(case) {
        return Err(unmet("the exit code does not match a stop (137, 143)"));
    }
    let supports = vec![Cited::at(Status::Deleted, &case.pod_place())];
    Ok(decided(Class::NotMemory, case.end_phase(), Confidence::High, "the pod was deleted", supports))
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::verdict::rules::testing::{File, holds, near_miss, pod_with};

    fn deleted(code: i64) -> File {
        pod_with(code, "Error", |p| p["metadata"]["deletionTimestamp"] = "2026-11-20T10:31:00Z".into())
    }

    #[test]
    fn a_kill_in_a_deleted_pod_is_of_the_deletion() {
        holds(&RULE, &[deleted(137)]);
    }

    #[test]
    fn a_crash_is_not() {
        near_miss(&RULE, "segfault", &[deleted(139)]);
    }
}
