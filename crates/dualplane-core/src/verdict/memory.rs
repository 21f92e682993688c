//! Whose cgroup some counters are of, and which kill they rule out.

use super::proof::{self, NoKill};
use super::{Cause, Cited, Class, Decided, Plane, Subject};
use crate::evidence::host_model::Cgroup;
use crate::evidence::{Bundle, ContainerStatus};

/// Whose cgroup it is, the nearest to the death first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// Of the instance that died.
    Dead,
    /// Of the pod as a whole.
    Pod,
    /// Nothing tells.
    Unsaid,
    /// Of the instance that runs now: its counters began after the death.
    Running,
    /// Of another container or pod.
    Other,
}

pub(super) fn whose(c: &Cgroup, bundle: &Bundle, subject: &Subject) -> Whose {
    let pod = subject.pod_of(bundle);
    if let Some(id) = c.container_id() {
        let dead = subject.death.as_ref().and_then(|d| d.container_id.as_deref());
        if dead == Some(id.as_str()) {
            return Whose::Dead;
        }
        let own = pod.and_then(|p| p.containers.iter().find(|k| Some(&k.name) == subject.container.as_ref()));
        let mut ids =
            own.iter().filter_map(|k| k.status.as_ref()).flat_map(ContainerStatus::instance_ids).peekable();
        if ids.peek().is_some() {
            let known = ids.any(|i| i == id);
            // Alive or an instance between: not the one whose end is judged, unless no end is known.
            return match (known, dead) {
                (true, None) => Whose::Dead,
                (true, Some(_)) => Whose::Running,
                (false, _) => Whose::Other,
            };
        }
    }
    match (c.pod_uid(), pod.filter(|p| !p.uid.is_empty())) {
        (Some(uid), Some(p)) if uid == p.uid => Whose::Pod,
        (Some(_), Some(_)) => Whose::Other,
        _ => Whose::Unsaid,
    }
}

/// The cgroup of the instance that died, where its statistics are at hand: by its path, or by the kill that it counts.
#[must_use]
pub fn cgroup_of_the_dead<'b>(bundle: &'b Bundle, subject: &Subject) -> Option<&'b Cgroup> {
    let told = |c: &&Cgroup| c.anon.is_some() || c.shmem.is_some();
    let killed = |c: &Cgroup| c.oom_kill.as_ref().is_some_and(|k| k.count > 0);
    let dead = |c: &&Cgroup| match whose(c, bundle, subject) {
        Whose::Dead => true,
        Whose::Unsaid => killed(c),
        Whose::Pod | Whose::Running | Whose::Other => false,
    };
    bundle.cgroups.iter().filter(told).find(dead)
}

/// A cgroup that counts no OOM kill rules one out for what lived in it, where the verdict lies elsewhere.
pub(super) fn no_kill(
    bundle: &Bundle,
    decided: &Decided,
    subject: &Subject,
    causes: &[Cause],
) -> Option<Cause> {
    let rejected = |c: &Cause| c.class == Class::HostOomKilled && c.rejected;
    if decided.class.plane() == Plane::Host || causes.iter().any(rejected) {
        return None;
    }
    let against: Vec<Cited> = bundle
        .cgroups
        .iter()
        .filter_map(|c| Some((c, c.oom_kill.as_ref().filter(|k| k.count == 0)?, whose(c, bundle, subject))))
        .filter(|(_, _, w)| *w != Whose::Other)
        .map(|(_, k, w)| {
            let whose = match w {
                Whose::Dead => NoKill::Dead,
                Whose::Pod => NoKill::Pod,
                Whose::Running => NoKill::Running,
                Whose::Unsaid | Whose::Other => NoKill::Unknown,
            };
            Cited::at(proof::Cgroup::NoKill(whose), &k.place)
        })
        .take(4)
        .collect();
    (!against.is_empty()).then(|| Cause::no_kill(against))
}
