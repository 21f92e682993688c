//! A cgroup's own counters as a candidate: a kill that the kernel counted where its log is not at hand.

use super::{Candidate, Source, end_phase};
use crate::evidence::Bundle;
use crate::evidence::host_model::{Cgroup, Counter};
use crate::facts::{Facts, Place};
use crate::text::counted;
use crate::units::Bytes;
use crate::verdict::memory::{Whose, whose};
use crate::verdict::proof;
use crate::verdict::rules::first;
use crate::verdict::{Cited, Class, Confidence, Subject};
use dualplane_base::order::Order as _;

/// `oom_kill` above zero, in a cgroup that can be the subject's.
///
/// `memory.events` tells whose limit it was: `oom` counts failures at this cgroup's limit or below it, `oom_kill` the
/// processes of it that any OOM killer ended. A kill without a failure was asked for from above: by the pod's limit, where
/// the pod's own files say so, else by the machine.
pub(super) fn oom_killed(bundle: &Bundle, subject: &Subject, facts: &Facts) -> Option<Candidate> {
    let mut all: Vec<(Whose, &Cgroup)> =
        bundle.cgroups.iter().map(|c| (whose(c, bundle, subject), c)).collect();
    all.retain(|(w, c)| {
        !matches!(w, Whose::Other | Whose::Running) && c.oom_kill.as_ref().is_some_and(|k| k.count > 0)
    });
    all.order_by_key(|(w, _)| *w);
    let (whose, c) = all.first()?;
    // Of another cgroup than the dead container's own it only explains an end that is a SIGKILL or is not known.
    let fits = subject.death.as_ref().is_none_or(|d| d.ended_with(137) || d.oom_killed());
    if !fits && *whose != Whose::Dead {
        return None;
    }
    let kills = c.oom_kill.as_ref()?;
    let from_above = c.oom.as_ref().is_some_and(|o| o.count == 0)
        || c.oom.is_none() && c.at_limit.as_ref().is_some_and(|a| a.count == 0)
        || c.unlimited;
    let pod = pod_above(bundle, c);
    let pod_failed = pod.filter(|_| from_above).and_then(|p| failed_at_its_own(bundle, p));
    let class = if from_above && pod_failed.is_none() { Class::HostNodeOom } else { Class::HostOomKilled };
    let limit = c.limit.as_ref().map(|l| format!(" of {}", l.bytes)).unwrap_or_default();
    let what = match (class, &pod_failed) {
        (Class::HostNodeOom, _) => format!(
            "the cgroup counts {} without reaching its own limit: a parent cgroup or the node \
            ran out",
            counted(kills.count, "OOM kill")
        ),
        (_, Some((_, limit))) => {
            format!(
                "the cgroup counts {}, at the memory limit of its pod of {limit}",
                counted(kills.count, "OOM kill")
            )
        }
        _ => format!("the cgroup counts {} at its memory limit{limit}", counted(kills.count, "OOM kill")),
    };
    let at = Place { line: None, ..kills.place.clone() };
    let mut out = Candidate::new(first::cgroup_oom_kill::ID, class, Source::Cgroup, what, "cgroup.oom_kill")
        .at(&at, "", None);
    out.phase = end_phase(facts);
    let sure =
        *whose == Whose::Dead && class == Class::HostOomKilled && c.oom.is_some() && pod_failed.is_none();
    out.confidence = if sure { Confidence::High } else { Confidence::Medium };
    out.supports.push(Cited::at(proof::Cgroup::OomKill(kills.count), &kills.place));
    if let Some(o) = &c.oom {
        out.supports.push(Cited::at(proof::Cgroup::Oom(o.count), &o.place));
    }
    if let Some((failed, _)) = pod_failed {
        out.supports.push(Cited::at(proof::Cgroup::PodFailures(failed.count), &failed.place));
    }
    if *whose == Whose::Unsaid {
        out.against.push(Cited::at(proof::Cgroup::UnknownContainer, &at));
    }
    // The pod's own files settle it.
    if class == Class::HostNodeOom && pod.is_none_or(|p| p.limit.is_none() && !p.unlimited) {
        out.against.push(Cited::at(proof::Cgroup::PodLimitAbove, &at));
    }
    out.against.push(Cited::at(proof::Cgroup::NoTime, &at));
    Some(out)
}

/// The pod's group above a container's.
fn pod_above<'b>(bundle: &'b Bundle, c: &Cgroup) -> Option<&'b Cgroup> {
    c.container_id()?;
    let uid = c.pod_uid()?;
    bundle
        .cgroups
        .iter()
        .find(|p| p.container_id().is_none() && p.pod_uid().as_ref() == Some(&uid) && p.suffix == c.suffix)
}

/// What counts failures at the limit of a pod's group, and the limit. `oom` has those of its containers in it.
fn failed_at_its_own<'b>(bundle: &Bundle, pod: &'b Cgroup) -> Option<(&'b Counter, Bytes)> {
    let limit = pod.limit.as_ref()?.bytes;
    let Some(oom) = &pod.oom else {
        return pod.at_limit.as_ref().filter(|a| a.count > 0).map(|a| (a, limit));
    };
    let uid = pod.pod_uid();
    let below = bundle
        .cgroups
        .iter()
        .filter(|c| c.container_id().is_some() && c.pod_uid() == uid && c.suffix == pod.suffix)
        .filter_map(|c| c.oom.as_ref())
        .fold(0_u64, |sum, o| sum.saturating_add(o.count));
    (oom.count > below).then_some((oom, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::RawFile;
    use crate::knowledge::Knowledge;

    const POD: &str = "cgroup/kubepods.slice/kubepods-pod651fc813_479c_4184_8be1_cf5e4ec41ec3.slice";

    /// Class and what speaks against it, from limit and `oom` of the pod and `oom` of a sidecar.
    fn judged(pod: Option<(&str, u64)>, sidecar: u64) -> (Class, bool) {
        let file = |name: String, text: String| RawFile { name, bytes: text.into_bytes(), sifted: None };
        let group = |name: &str, limit: &str, oom: u64, kills: u64| {
            [
                file(format!("{POD}{name}/memory.max"), format!("{limit}\n")),
                file(
                    format!("{POD}{name}/memory.events"),
                    format!("low 0\nhigh 0\nmax 9\noom {oom}\noom_kill {kills}\noom_group_kill 0\n"),
                ),
            ]
        };
        let mut files = Vec::new();
        files.extend(group(&format!("/cri-containerd-{}.scope", "a".repeat(64)), "max", 0, 1));
        files.extend(group(&format!("/cri-containerd-{}.scope", "b".repeat(64)), "1048576", sidecar, 0));
        if let Some((limit, oom)) = pod {
            files.extend(group("", limit, oom, 1));
        }
        let knowledge = Knowledge::embedded().unwrap();
        let bundle = Bundle::from_files(files);
        let facts = crate::facts::extract(&bundle, &knowledge);
        let verdict = crate::verdict::judge(&bundle, &facts, &knowledge);
        let pod_in_doubt = verdict
            .causes
            .iter()
            .any(|c| c.against.iter().any(|a| a.proof == proof::Cgroup::PodLimitAbove.into()));
        (verdict.class, pod_in_doubt)
    }

    #[test]
    fn a_pod_s_files_say_whether_its_limit_was_hit() {
        assert_eq!(judged(None, 0), (Class::HostNodeOom, true));
        assert_eq!(judged(Some(("max", 0)), 0), (Class::HostNodeOom, false));
        assert_eq!(judged(Some(("100663296", 0)), 0), (Class::HostNodeOom, false));
        assert_eq!(judged(Some(("100663296", 1)), 0), (Class::HostOomKilled, false));
        // The failure was a sidecar's, at its own limit.
        assert_eq!(judged(Some(("100663296", 1)), 1), (Class::HostNodeOom, false));
    }
}
