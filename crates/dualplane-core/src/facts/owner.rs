//! Whose a kernel line is: a node's log tells of all its pods, and most lines name somebody.
//!
//! A line names a pod by its UID, a container by its id, both in the path of a cgroup, or a process by its pid. Whoever is
//! named and is not of the pod at hand is somebody else, whatever the line says; a line that names nobody is the node's.
//! This is the one place that decides it, for every kind of line: signatures, OOM records and Xid events.

use std::collections::BTreeSet;

use dualplane_base::cgroup_path::{container_id, pod_uid};

use super::{Hit, OomRecord, Victim, XidEvent};
use crate::evidence::{Bundle, ContainerStatus, State, died, in_group};
use crate::knowledge::Knowledge;
use crate::time::{Stamp, WIDEST_ZONE_MS};
use crate::units::Bytes;

/// Whom a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The pod at hand.
    Ours,
    /// Somebody else: another pod, or a service of the node.
    Another,
    /// It names nobody, or nothing at hand says who that is.
    Unsaid,
}

/// By what the pod at hand is known to the kernel.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    uids: BTreeSet<String>,
    ids: BTreeSet<String>,
    /// Groups of systemd units, which have neither.
    groups: Vec<String>,
    /// Pids of the machine that are known to be ours, and whether there are no others.
    pids: BTreeSet<u64>,
    all_pids: bool,
    /// Pids that the kernel tells to be of somebody else.
    others: BTreeSet<u64>,
    /// Their status leaves it open that the kernel killed them: it says so, or does not say how they ended.
    maybe_killed: bool,
    /// They ended by SIGKILL, and their status does not say who sent it.
    by_sigkill: bool,
    /// The most that a container of theirs may hold; `None` where one has no limit that the evidence shows.
    may_hold: Option<Bytes>,
    /// Containers that run and never ended: since when, and the most that each may hold.
    living: Vec<(Option<Stamp>, Option<Bytes>)>,
}

impl Owners {
    /// The pods that failed; where none did, all at hand.
    pub(crate) fn of(bundle: &Bundle) -> Self {
        let failed = bundle.pods.iter().any(died);
        let mut out = Self::default();
        for pod in bundle.pods.iter().filter(|p| !failed || died(p)) {
            out.uids.extend([Some(&pod.uid), pod.config_hash.as_ref()].into_iter().flatten().cloned());
            out.groups.extend(pod.unit_group().map(str::to_owned));
            let statuses = pod.containers.iter().filter_map(|c| c.status.as_ref());
            out.ids.extend(statuses.clone().flat_map(ContainerStatus::instance_ids).map(str::to_owned));
            out.maybe_killed |= statuses
                .clone()
                .flat_map(ContainerStatus::terminations)
                .any(|t| t.oom_killed() || t.exit_code.is_none());
            // An evicted or preempted pod was killed by the kubelet.
            out.by_sigkill |= pod.reason.is_none()
                && statuses.flat_map(ContainerStatus::terminations).any(|t| t.exit_code == Some(137));
        }
        if !failed {
            let containers = bundle.pods.iter().flat_map(|p| &p.containers);
            out.living.extend(containers.filter_map(|c| match c.status.as_ref()? {
                s @ ContainerStatus { state: State::Running { started }, .. }
                    if s.terminations().next().is_none() =>
                {
                    Some((*started, c.memory_limit))
                }
                _ => None,
            }));
        }
        let limits = bundle
            .pods
            .iter()
            .filter(|p| !failed || died(p))
            .flat_map(|p| p.containers.iter().map(|c| c.memory_limit));
        out.may_hold = limits.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        // A name that stands where the UID should is in no path.
        out.uids.retain(|u| u.len() >= 32);
        out.ids.retain(|id| !id.is_empty());
        if let Some(list) = &bundle.processes {
            out.pids.extend(&list.pids);
            out.all_pids = list.whole;
        }
        out
    }

    /// Learns from whole records which processes are whose.
    pub(crate) fn learn(&mut self, records: &[OomRecord]) {
        for record in records {
            let into = match self.of_record(record) {
                Whose::Ours => &mut self.pids,
                Whose::Another => &mut self.others,
                Whose::Unsaid => continue,
            };
            into.extend(record.victims.iter().map(|v| v.pid));
            // Of a cgroup's own shortage the table lists the tasks of that cgroup; else those of the machine.
            if record.constraint == super::Constraint::Memcg && !record.node_allocatable() {
                into.extend(record.tasks.iter().map(|t| t.pid));
            }
        }
        let ours = &self.pids;
        self.others.retain(|p| !ours.contains(p));
    }

    /// Whom the path of a cgroup is of.
    pub(crate) fn of_path(&self, path: &str) -> Whose {
        let told = |known: bool| if known { Whose::Ours } else { Whose::Another };
        let open = path.trim_matches('/').is_empty() || path.contains("..");
        if !self.groups.is_empty() && !open {
            return told(self.groups.iter().any(|g| in_group(path, g)));
        }
        let (uid, id) = (pod_uid(path), container_id(path));
        if let Some(uid) = uid.as_ref().filter(|_| !self.uids.is_empty()) {
            return told(self.uids.contains(uid));
        }
        if let Some(id) = id.as_ref().filter(|_| !self.ids.is_empty()) {
            return told(self.ids.contains(id));
        }
        // All pods together; a nested cluster may show its own root, or a path that leads out of its namespace.
        let named = uid.is_some() || id.is_some();
        if named || open || path.contains("kubepods") || self.uids.is_empty() {
            Whose::Unsaid
        } else {
            Whose::Another
        }
    }

    /// Whose process it is.
    pub(crate) fn of_pid(&self, pid: u64) -> Whose {
        if self.pids.contains(&pid) {
            Whose::Ours
        } else if self.others.contains(&pid) || self.all_pids {
            Whose::Another
        } else {
            Whose::Unsaid
        }
    }

    /// Whose line a signature knows.
    pub(crate) fn of_hit(&self, hit: &Hit) -> Whose {
        if let Some(path) = hit.word("cgroup") {
            let whose = self.of_path(&path);
            // The limit of all pods together is not of the pod; its victim may be named besides.
            if whose != Whose::Unsaid {
                return whose;
            }
        }
        if let Some(id) = hit.word("container_id").filter(|_| !self.ids.is_empty()) {
            let same = |known: &String| known.starts_with(&id) || id.starts_with(known.as_str());
            return if self.ids.iter().any(same) { Whose::Ours } else { Whose::Another };
        }
        if !hit.of_kernel() {
            return Whose::Unsaid;
        }
        let paths = words(&hit.text).filter(|w| w.len() > 32 && w.contains('/'));
        if let Some(whose) = paths.map(|p| self.of_path(p)).find(|w| *w != Whose::Unsaid) {
            return whose;
        }
        // A fault of the whole driver names whoever met it.
        match hit.pid().filter(|_| !hit.of_machine()) {
            Some(pid) => self.of_pid(pid),
            None => Whose::Unsaid,
        }
    }

    /// Whose kill a record tells of: the victim's cgroup says it, else that of the limit, else its pid.
    pub(crate) fn of_record(&self, oom: &OomRecord) -> Whose {
        let paths = [&oom.task_memcg, &oom.oom_memcg];
        let named =
            |p: &&String| pod_uid(p).is_some() || container_id(p).is_some() || !self.groups.is_empty();
        if let Some(path) = paths.into_iter().flatten().find(named) {
            let whose = self.of_path(path);
            // Where no pod and no group is at hand, a list of processes may be.
            if whose != Whose::Unsaid || self.pids.is_empty() {
                return whose;
            }
        }
        if let Some(path) = oom.oom_memcg.as_deref().filter(|_| oom.constraint == super::Constraint::Memcg)
            && self.of_path(path) == Whose::Another
        {
            return Whose::Another;
        }
        let mut pids = oom.victims.iter().map(|v| self.of_pid(v.pid)).filter(|w| *w != Whose::Unsaid);
        if let Some(whose) = pids.next() {
            return whose;
        }
        // A head whose rest is lost or still being written, or a victim without the head that names its cgroup, which the
        // kernel leaves out where kills come thick: somebody ran out. The runtime counts the kills at a cgroup's limit, and
        // so the status of whom they are of says OOMKilled; on cgroup v1 it does not hear of the machine's own shortage. And
        // no process holds more than its container may.
        let nameless = nameless(oom) && !self.uids.is_empty();
        let too_large = |v: &Victim| exceeds(v, self.may_hold);
        let of_machine = oom.constraint != super::Constraint::Memcg && !oom.victims.is_empty();
        let open = self.maybe_killed || self.by_sigkill && of_machine;
        if nameless && (!open || oom.victims.iter().any(too_large)) { Whose::Another } else { Whose::Unsaid }
    }

    /// A kill at the limit of a cgroup that the record does not name, while a container at hand ran that could hold the victim:
    /// of the death of a child no status tells, so whose it was is open.
    pub(crate) fn may_be_inside(&self, oom: &OomRecord) -> bool {
        // The clock of a node that prints no zone may stand hours before the API's.
        let at = oom.stamp.map(|s| s.moved(WIDEST_ZONE_MS));
        let ran = |began: &Option<Stamp>| began.zip(at).and_then(|(b, at)| b.reaches(at)) != Some(false);
        let holds = |most: Option<Bytes>| !oom.victims.iter().any(|v| exceeds(v, most));
        nameless(oom)
            && oom.constraint == super::Constraint::Memcg
            && self.living.iter().any(|(began, most)| ran(began) && holds(*most))
    }

    /// Whose fault an Xid is, where only the process that it names suffers of it.
    pub(crate) fn of_xid(&self, xid: &XidEvent, knowledge: &Knowledge) -> Whose {
        let of_process = knowledge.xid(xid.code).is_some_and(|k| k.affects == "process");
        xid.pid.filter(|_| of_process).map_or(Whose::Unsaid, |pid| self.of_pid(pid))
    }
}

/// Neither the cgroup at its limit nor the victim's is told.
pub(super) fn nameless(oom: &OomRecord) -> bool {
    oom.task_memcg.is_none() && oom.oom_memcg.is_none()
}

/// A process that held more than this.
fn exceeds(victim: &Victim, most: Option<Bytes>) -> bool {
    most.is_some_and(|most| victim.anon.is_some_and(|anon| anon > most))
}

/// The words of a line, among which paths are: without quotes and what assigns them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '=' | '(' | ')'))
}

impl Hit {
    /// Ids of containers that the line names.
    pub(crate) fn containers(&self) -> impl Iterator<Item = String> {
        let of_paths = self.of_kernel().then(|| words(&self.text).filter_map(container_id));
        self.word("container_id").into_iter().chain(of_paths.into_iter().flatten())
    }

    /// The process that the line names.
    #[must_use]
    pub fn pid(&self) -> Option<u64> {
        self.word("pid")?.trim().parse().ok()
    }

    /// A line of the kernel, or of a killer of the node that stands in its log.
    #[must_use]
    pub fn of_kernel(&self) -> bool {
        self.kernel || self.id.starts_with("kernel.")
    }

    /// The line tells of the machine, and names a process only because that one met it.
    fn of_machine(&self) -> bool {
        self.id == "kernel.uvm_global_fatal"
    }
}
