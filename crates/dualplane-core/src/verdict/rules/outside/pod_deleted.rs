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
    when: "the pod has a deletionTimestamp, its deletion was requested before the end, and the exit code matches a stop \
    (137, 143)",
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
    let ended = case.death().and_then(|d| d.finished);
    if ended.is_some_and(|end| case.pod().is_some_and(|p| p.deleted_after(end))) {
        return Err(unmet("the pod was deleted after the container had ended"));
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
        deleted_at(code, "2026-11-20T10:30:00Z")
    }

    fn deleted_at(code: i64, at: &'static str) -> File {
        pod_with(code, "Error", |p| p["metadata"]["deletionTimestamp"] = at.into())
    }

    #[test]
    fn a_kill_in_a_deleted_pod_is_of_the_deletion() {
        holds(&RULE, &[deleted(137)]);
    }

    #[test]
    fn a_deletion_after_the_end_did_not_cause_it() {
        near_miss(&RULE, "killed", &[deleted_at(137, "2026-11-20T10:45:00Z")]);
    }

    #[test]
    fn a_crash_is_not() {
        near_miss(&RULE, "segfault", &[deleted(139)]);
    }
}
