//! Which records of the kernel's OOM killer are of this incident: a node's log tells of all its pods.

use super::{Confidence, Subject, identity};
use crate::evidence::{Bundle, ContainerStatus, Pod, Termination};
use crate::facts::{Constraint, Facts, OomRecord};
use crate::units::Bytes;
use dualplane_base::order::Order as _;

/// A kernel record this far from the container's end is another death's.
const SAME_DEATH_MS: i64 = 10 * 60 * 1000;

/// Index of the record that concerns this incident most.
pub(super) fn own(bundle: &Bundle, facts: &Facts, subject: &Subject) -> Option<usize> {
    let (first, _) = *relevant(bundle, facts, subject).first()?;
    facts.ooms.iter().position(|o| std::ptr::eq(o, first))
}

impl Subject {
    /// The kernel's record of its kill.
    #[must_use]
    pub fn kill_of<'a>(&self, facts: &'a Facts) -> Option<&'a OomRecord> {
        facts.ooms.get(self.kill?)
    }
}

/// OOM-killer records that concern this incident, the dead instance's own first, with how sure that is.
pub(super) fn relevant<'a>(
    bundle: &Bundle,
    facts: &'a Facts,
    subject: &Subject,
) -> Vec<(&'a OomRecord, Confidence)> {
    let pod = subject.pod_of(bundle);
    let dead_id = subject.death.as_ref().and_then(|d| d.container_id.as_deref());
    let ids: Vec<&str> = pod
        .iter()
        .flat_map(|p| &p.containers)
        .filter_map(|c| c.status.as_ref())
        .flat_map(ContainerStatus::instance_ids)
        .collect();
    // Another container of the pod, whose kill is its own affair.
    let others: Vec<&str> = pod
        .iter()
        .flat_map(|p| &p.containers)
        .filter(|c| Some(&c.name) != subject.container.as_ref())
        .filter_map(|c| c.status.as_ref())
        .flat_map(ContainerStatus::instance_ids)
        .collect();
    // An init container that was killed and then completed explains nothing that came later.
    let overcome: Vec<&str> = pod
        .iter()
        .flat_map(|p| &p.containers)
        .filter(|c| Some(&c.name) != subject.container.as_ref())
        .filter_map(|c| c.overcame()?.container_id.as_deref())
        .collect();
    let uids: Vec<&str> =
        pod.iter().flat_map(|p| [Some(p.uid.as_str()), p.config_hash.as_deref()]).flatten().collect();
    let group = pod.and_then(Pod::unit_group);
    let mut out = Vec::new();
    for oom in &facts.ooms {
        let id = oom.container_id();
        let uid = oom.pod_uid();
        if id.as_deref().is_some_and(|id| overcome.contains(&id)) {
            continue;
        }
        let of_other = id.as_deref().is_some_and(|id| others.contains(&id));
        if of_other && (subject.death.is_some() || bundle.judged.is_some()) {
            continue;
        }
        // An earlier instance's kill does not explain how the later one ended by itself.
        let of_earlier = id.is_some() && dead_id.is_some() && id.as_deref() != dead_id && !of_other;
        if of_earlier && subject.death.as_ref().is_some_and(by_itself) {
            continue;
        }
        let same_id = id.as_deref().is_some_and(|id| ids.contains(&id));
        let same_uid = uid.as_deref().is_some_and(|u| uids.contains(&u));
        let same_group = group.is_some_and(|g| oom.in_group(g));
        // A container that could not even start died of what an earlier instance left: the earlier record is the cause.
        let rank = if id.is_some() && id.as_deref() == dead_id && !oom.before_start() {
            0
        } else if same_id || same_uid || same_group {
            1
        } else if group.is_some() && !nameless(oom)
            || (id.is_some() && !ids.is_empty())
            || (uid.is_some() && !uids.is_empty())
        {
            // Somebody else's cgroup, and we know our own.
            continue;
        } else if pod.is_some() && far_from_death(oom, subject)
            || identity::other_host(&oom.text, bundle, subject).is_some()
            || cut_off(oom, facts)
            || pod.is_some_and(|p| other_limit(oom, p))
            || outside_pods(oom, !uids.is_empty())
            || !uids.is_empty() && ended_otherwise(oom, subject)
        {
            continue;
        } else {
            2
        };
        let sure = if rank < 2 || pod.is_none() { Confidence::High } else { Confidence::Medium };
        out.push((rank, oom, sure));
    }
    // A headless record is the rest of an older one: it only speaks where no whole record is left.
    out.order_by_key(|(rank, oom, _)| (*rank, oom.headless()));
    // Without a pod to go by, a record about a model server speaks before one about its neighbours.
    if pod.is_none() && out.iter().any(|(_, o, _)| serves_models(o, facts)) {
        out.retain(|(_, o, _)| serves_models(o, facts));
    }
    // With a record of the very instance, those of other instances only repeat the loop.
    let best = out.first().map(|(r, ..)| *r);
    out.into_iter().filter(|(r, ..)| Some(*r) == best).map(|(_, o, s)| (o, s)).collect()
}

/// A victim's or invoker's name is that of a model server or of what it runs on (at most 15 characters of it).
fn serves_models(oom: &OomRecord, facts: &Facts) -> bool {
    let mut comms = oom.victims.iter().map(|v| v.comm.as_str()).chain(oom.invoker.as_deref());
    comms.any(|c| facts.engine.all.serves_models(c))
}

/// Neither its victim's cgroup nor that of the limit is told.
fn nameless(oom: &OomRecord) -> bool {
    !oom.in_container() && oom.oom_memcg.is_none()
}

/// No OOM kill ended it, as far as its status tells.
fn by_itself(end: &Termination) -> bool {
    !end.oom_killed() && !end.message.contains("OOM-killed")
}

/// A record that names no cgroup, beside a container whose status tells of another end: it is of a neighbour in the pod, or of
/// another pod. The runtime counts the kills at a container's limit, whatever its exit code then is.
fn ended_otherwise(oom: &OomRecord, subject: &Subject) -> bool {
    let at_limit = oom.constraint == Constraint::Memcg;
    let told = |d: &Termination| {
        let open = d.exit_code.is_none() || d.exit_code == Some(137) && !at_limit;
        !open && by_itself(d)
    };
    nameless(oom) && subject.death.as_ref().is_some_and(told)
}

/// The limit was that of a cgroup that is no pod's (a service of the node), and we know our own pod's.
fn outside_pods(oom: &OomRecord, known: bool) -> bool {
    let path = oom.oom_memcg.as_deref().unwrap_or_default().trim_matches('/');
    // A nested cluster may show its own root, or a path that leads out of its namespace.
    let elsewhere = !path.is_empty() && !path.contains("kubepods") && !path.contains("..");
    known && oom.constraint == Constraint::Memcg && elsewhere && !oom.in_container()
}

/// A part of a record: its head is lost to the ring, or lines of it were left out. In a log whose other records name
/// their cgroups it may be of any pod of the node.
fn cut_off(oom: &OomRecord, facts: &Facts) -> bool {
    let whole = matches!(oom.constraint, Constraint::Global | Constraint::Numa) && !oom.headless();
    nameless(oom) && !whole && facts.ooms.iter().any(|o| o.place.file == oom.place.file && o.in_container())
}

/// A record without its cgroup's name, at a limit that no container of the pod has, nor all of them together: of another
/// pod. A limit that is not known, or was changed while it ran, excludes nothing.
fn other_limit(oom: &OomRecord, pod: &Pod) -> bool {
    let Some(hit) = oom.limit.filter(|_| nameless(oom) && pod.whole()) else { return false };
    let own: Option<Vec<Bytes>> = pod.containers.iter().map(|c| c.memory_limit).collect();
    let Some(own) = own.filter(|o| !o.is_empty()) else { return false };
    let all = own.iter().fold(Bytes(0), |sum, l| sum.saturating_add(*l));
    // The kernel counts in pages and prints kilobytes.
    const PAGE: u64 = 64 * 1024;
    let same = |l: &Bytes| l.0.abs_diff(hit.0) <= PAGE;
    !own.iter().chain(&pod.memory_limit).chain([&all]).any(same)
}

/// The record is too far from the container's end to be it. A stamp without a zone may be off by whole zones.
fn far_from_death(oom: &OomRecord, subject: &Subject) -> bool {
    let Some(died) = subject.death.as_ref().and_then(|d| d.finished) else { return false };
    let Some(gap) = oom.stamp.and_then(|s| s.ms_until(died)) else { return false };
    gap.abs() > SAME_DEATH_MS && oom.stamp.and_then(|s| s.zone_until(died)).is_none()
}
