//! Ends of containers: which are frozen, when, and what is taken along. The second half of the first thread.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use dualplane_core::evidence::Gap;
use dualplane_node::cgroup::{Kind as GroupKind, Version};
use dualplane_node::clock::{Anchor, Moment};
use dualplane_node::cri::{self, Change};
use dualplane_node::kmsg::Kernel;
use dualplane_node::node::{Listing, Proc};
use dualplane_node::pod_resources::KubeletGap;

use super::Recorder;
use super::container_ref::ContainerRef;
use super::crash_loops::Admission;
use super::freeze::Freeze;
use super::judge::InstanceEvent;
use super::quotes::{LineOwners, OomKill, quote};
use super::recorder::OLD_LOG;
use super::time::rfc3339;
use crate::incident::{Kind, id_of};
use crate::ring::{Note, Recovered};
use crate::view::ContainerView;

/// For so long a name is waited for: the kubelet links a log a moment after the container starts.
const NAMELESS: Duration = Duration::from_secs(5);
/// For so long a kill waits for the end of its container, which tells more.
const KILL_WAITS: Duration = Duration::from_secs(3);
/// A later kill in the same container within so long says nothing new.
const KILL_AGAIN: Duration = Duration::from_secs(60);
/// News of the log folders wait so long: the group that vanished tells the same sooner, and more.
const NEWS_WAIT: Duration = Duration::from_secs(7);
/// For so long after a group came or went, the kubelet's folders follow.
const STIRRED: Duration = Duration::from_secs(5);
/// Between two looks into the log folders meanwhile; a round comes each second, more or less.
const LOGS_SOON: Duration = Duration::from_millis(900);
/// Between two looks else.
const LOGS_SELDOM: Duration = Duration::from_secs(5);
/// Freezes that wait for the disk. Each holds some descriptors and KiB.
const MAX_FROZEN: u64 = 512;
/// Kills of which the kernel did not say whose they were concern an end within so many microseconds.
const HELD_BACK_US: u64 = 5_000_000;

/// What a log folder told, until the group has had its time to tell more.
pub(super) struct LateNews {
    due: Moment,
    change: Change,
    /// The folder came while this agent ran.
    watched: bool,
}

/// An end, or a kill inside of a container that lives on.
struct End {
    kind: Kind,
    first: bool,
    who: ContainerRef,
    container: Option<ContainerView>,
    log: Option<cri::OpenLog>,
    kills: u64,
    gap: Option<Gap>,
}

impl Recorder {
    /// A container ended.
    pub(super) fn gone(&mut self, c: ContainerView) {
        self.counts.ends += 1;
        let kubernetes = c.group.identity.pod_uid.is_some() && c.group.kind == GroupKind::Container;
        if c.named.is_none() && kubernetes {
            self.nameless.push((Moment::now().plus(NAMELESS), c));
            return;
        }
        self.freeze_container(c, None);
    }

    /// Containers that an earlier run knew and that are not there any more.
    pub(super) fn take_up(&mut self, recovered: Recovered) {
        let there: HashSet<String> =
            self.observer.view().containers.values().map(|c| c.group.path().to_owned()).collect();
        for r in recovered.containers {
            if there.contains(r.group.path()) {
                continue;
            }
            self.counts.ends += 1;
            self.counts.ends_unseen += 1;
            let words = r.command.clone();
            let first = Proc { pid: 1, words, ..Proc::default() };
            let processes = if first.words.is_empty() { Vec::new() } else { vec![first] };
            let at = r.at.unwrap_or(self.began);
            let c = ContainerView {
                named: r.named,
                memory: r.memory,
                shm: r.shm,
                processes: Arc::new(Listing { processes, left_out: 0 }),
                ..ContainerView::new(u16::MAX, r.group, at)
            };
            let gap = Gap {
                what: "the exact time of the end".into(),
                why: "the container ended while the agent was not running; its series end with the \
                previous run"
                    .into(),
                command: None,
            };
            if c.named.is_none() && c.group.identity.pod_uid.is_some() {
                self.nameless.push((Moment::now().plus(NAMELESS), c));
            } else {
                self.freeze_container(c, Some(gap));
            }
        }
    }

    /// Looks into the log folders: each second while groups come and go, seldom else. The kubelet makes and removes folders
    /// within seconds of the groups, and a `stat` of each costs as much as the samples do.
    pub(super) fn look_at_logs_in_turn(&mut self) {
        let now = Moment::now();
        let every = if now.since(self.stirred) < STIRRED { LOGS_SOON } else { LOGS_SELDOM };
        if now.since(self.looked_at_logs) >= every {
            self.look_at_logs();
        }
    }

    /// Later instances and removed pods, by the kubelet's log folders.
    pub(super) fn look_at_logs(&mut self) {
        // What was there before this agent: another one has seen it end, or nobody will say when.
        let watched = self.looked_at_logs != Moment::default();
        self.looked_at_logs = Moment::now();
        let mut changes = Vec::new();
        self.instances.look(&mut changes);
        let due = Moment::now().plus(NEWS_WAIT);
        for c in changes {
            match &c {
                Change::Started { pod, container, restart, .. } => {
                    let (uid, container) = (pod.uid.clone(), container.clone());
                    let _ = self.news.send(InstanceEvent::Restarted { uid, container, restart: *restart });
                }
                Change::Removed { pod, .. } => {
                    let _ = self.news.send(InstanceEvent::Removed { uid: pod.uid.clone() });
                }
            }
            self.late.push(LateNews { due, change: c, watched });
        }
    }

    /// What had to wait: containers without a name, kills, instances that nobody saw end.
    pub(super) fn settle_late(&mut self) {
        let now = Moment::now();
        let waiting = std::mem::take(&mut self.nameless);
        for (until, mut c) in waiting {
            self.observer.name_gone(&mut c);
            if c.named.is_some() {
                self.freeze_container(c, None);
            } else if now < until {
                self.nameless.push((until, c));
            } else if self.kills.contains_key(&c.slot) || self.record_of(&c).is_some() {
                self.freeze_container(c, None);
            } else {
                // The sandbox of a pod has no log and no link.
                self.counts.nameless += 1;
                self.mark_gone(c.group.path().to_owned());
            }
        }
        let due: Vec<u16> =
            self.kills.iter().filter(|(_, (_, at))| now.since(*at) >= KILL_WAITS).map(|(s, _)| *s).collect();
        for slot in due {
            self.kill(slot, now);
        }
        let (ready, wait): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.late).into_iter().partition(|l| now >= l.due);
        self.late = wait;
        for news in ready {
            self.ended_unseen(news);
        }
        self.ended_nameless.retain(|_, at| now.since(*at) < KILL_AGAIN);
        self.kill_told.retain(|_, at| now.since(*at) < KILL_AGAIN);
    }

    /// Processes of a container were killed, and it lives on.
    fn kill(&mut self, slot: u16, now: Moment) {
        let Some(c) = self.observer.view().containers.get(&slot).cloned() else {
            // It is gone: its end takes the kills along, or has.
            if !self.nameless.iter().any(|(_, c)| c.slot == slot) {
                self.kills.remove(&slot);
            }
            return;
        };
        let kills = self.kills.remove(&slot).map_or(0, |(n, _)| n);
        if self.kill_told.get(&slot).is_some_and(|at| now.since(*at) < KILL_AGAIN) {
            self.counts.skipped += 1;
            return;
        }
        self.kill_told.insert(slot, now);
        let who = ContainerRef::of(&c);
        let log = open_log(&c);
        self.send(End { kind: Kind::Kill, first: true, who, container: Some(c), log, kills, gap: None });
    }

    fn freeze_container(&mut self, c: ContainerView, gap: Option<Gap>) {
        let who = ContainerRef::of(&c);
        let path = c.group.path().to_owned();
        let kills = self.kills.remove(&c.slot).map_or(0, |(n, _)| n);
        match who.restart {
            Some(r) if !self.seen.insert(&who.uid, &who.container, r) => {
                self.mark_gone(path);
                return;
            }
            None if !who.uid.is_empty() => {
                self.ended_nameless.insert(who.uid.clone(), Moment::now());
            }
            _ => {}
        }
        let first = match self.loops.admit(&who.loop_key(), Moment::now()) {
            Admission::Skip => {
                self.counts.skipped += 1;
                self.mark_gone(path);
                return;
            }
            admitted => admitted == Admission::First,
        };
        let log = open_log(&c);
        let kind = if kills > 0 || self.record_of(&c).is_some() { Kind::Death } else { Kind::End };
        self.send(End { kind, first, who, container: Some(c), log, kills, gap });
    }

    /// An instance whose end was not seen, by its log: the agent began after it, or it lived too short a time.
    fn ended_unseen(&mut self, news: LateNews) {
        let Change::Started { pod, container, restart, ended, folder } = news.change else { return };
        // The first instance has none after it where the pod is never restarted: it ended where no group of it is there.
        let first = || (restart == 0 && news.watched && !self.may_live(&pod.uid, &container)).then_some(0);
        let Some(ended) = ended.or_else(first) else { return };
        if !self.seen.insert(&pod.uid, &container, ended) {
            return;
        }
        let log = cri::open(&folder, ended);
        if log.is_empty() || log.age().is_none_or(|a| a > OLD_LOG) {
            return;
        }
        let who = ContainerRef::of_folder(&pod, &container, ended);
        self.counts.ends += 1;
        self.counts.ends_unseen += 1;
        let first = match self.loops.admit(&who.loop_key(), Moment::now()) {
            Admission::Skip => {
                self.counts.skipped += 1;
                return;
            }
            admitted => admitted == Admission::First,
        };
        let gap = Gap {
            what: "the series of the dead instance".into(),
            why: "the container ended while the agent was not running, or between two samples; only its \
            log is left"
                .into(),
            command: None,
        };
        let log = Some(log);
        self.send(End { kind: Kind::End, first, who, container: None, log, kills: 0, gap: Some(gap) });
    }

    /// Its group is there, or one that may be it; or groups are not to be seen at all. An end that was told without a name may
    /// have been of it, too.
    fn may_live(&self, uid: &str, container: &str) -> bool {
        let containers = &self.observer.view().containers;
        let now = Moment::now();
        // What stays without a name is the pod's sandbox.
        let young = |c: &ContainerView| now.since(c.since) < NAMELESS;
        let own = |c: &ContainerView| {
            c.group.identity.pod_uid.as_deref() == Some(uid)
                && c.named.as_ref().map_or_else(|| young(c), |n| n.container == container)
        };
        containers.is_empty() || containers.values().any(own) || self.ended_nameless.contains_key(uid)
    }

    fn send(&mut self, end: End) {
        let End { kind, first, who, container, log, kills, gap } = end;
        let noticed = Moment::now();
        let found = container.as_ref().and_then(|c| self.oom_of(c));
        let (record, from_exec) = (found.map(|r| (r.number, r.us)), found.and_then(|r| r.from_exec));
        let at = record.and_then(|(_, us)| us).map_or(noticed, |us| Moment(us.saturating_mul(1000)));
        let wall_ms = Anchor::take().wall_ms(at.min(noticed));
        let id = name_of(kind, wall_ms, &who);
        let kernels: Vec<&Kernel> = self.history.iter().chain(&self.kernel).collect();
        // A pid of another container may stand in a line that names none.
        let lines = LineOwners {
            of_earlier: self.records.of_earlier(&who.container_id, &who.uid),
            of_own: self.records.of_own(&who.container_id),
            of_others: self.records.of_others(&who.container_id),
            foreign: self.records.of_foreign(&who.container_id, &who.uid),
        };
        let kernel = quote(&kernels, record.map(|(n, _)| n), at.0 / 1000, &lines);
        let mut gaps: Vec<Gap> = gap.into_iter().collect();
        if self.kernel.is_none() {
            gaps.push(Gap {
                what: "the kernel log".into(),
                why: format!("cannot read {} (needs CAP_SYSLOG)", self.config.kmsg.display()),
                command: Some("dmesg -T | grep -iE 'oom|xid'".into()),
            });
        }
        let unowned = self.records.unowned((at.0 / 1000).saturating_sub(HELD_BACK_US));
        if record.is_none() && unowned > 0 {
            gaps.push(Gap {
                what: format!("the containers of {unowned} OOM kills"),
                why: "the kernel prints ten full records in five seconds; further kills get one line \
                without the container"
                    .into(),
                command: None,
            });
        }
        if let Some(g) = &self.observer.view().gpu_gap {
            gaps.push(Gap { what: "VRAM of the node's GPUs".into(), why: g.to_string(), command: None });
        }
        if let (Some(Err(g)), false) = (&self.observer.view().kubelet, self.observer.view().gpus.is_empty())
            && !matches!(g, KubeletGap::NoSocket(_))
        {
            gaps.push(Gap {
                what: "the GPUs allocated to the container".into(),
                why: g.to_string(),
                command: None,
            });
        }
        let path = container.as_ref().map(|c| c.group.path().to_owned());
        let version = self.observer.sampler().hierarchy().map_or(Version::V2, |h| h.version);
        let freeze = Freeze {
            id,
            kind,
            first,
            who,
            noticed,
            wall_ms,
            kills,
            kernel_record: record.map(|(n, _)| n),
            from_exec,
            kernel,
            container,
            version,
            gpus: self.observer.view().gpus.clone(),
            machine: self.observer.view().machine,
            log,
            gaps,
        };
        if self.frozen >= MAX_FROZEN && !first {
            self.counts.overrun += 1;
            path.into_iter().for_each(|p| self.mark_gone(p));
            return;
        }
        self.frozen += 1;
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(freeze);
        }
    }

    /// Number and time of the kernel's record that names a container.
    fn record_of(&self, c: &ContainerView) -> Option<(u64, Option<u64>)> {
        self.oom_of(c).map(|r| (r.number, r.us))
    }

    fn oom_of(&self, c: &ContainerView) -> Option<&OomKill> {
        let id = &c.group.identity;
        let since = c.since.0 / 1000;
        let own = id.container_id.as_deref().and_then(|i| self.records.of(i));
        // A service unit has a path and no id.
        let unit =
            || (id.container_id.is_none()).then(|| self.records.of_path(c.group.path(), since)).flatten();
        // A record may name the pod alone, where the pod's limit was the one that was hit.
        own.or_else(unit).or_else(|| self.records.of_pod(id.pod_uid.as_deref()?, since))
    }

    /// The ring need not tell the next run of it. A container that lives is not marked: its kill was told.
    pub(super) fn mark_gone(&self, path: String) {
        let lives = self.observer.view().containers.values().any(|c| c.group.path() == path);
        if !path.is_empty() && !lives {
            let at = Moment::now();
            self.tape.ring().append(&[], &[Note::Gone { path, at }]);
        }
    }
}

/// A kill and the end that follows tell the time of one kernel record: they must not share a name, or the end, which takes the
/// place of the kill, would take away itself.
fn name_of(kind: Kind, wall_ms: i64, who: &ContainerRef) -> String {
    let restart = who.restart.map(|r| r.to_string()).unwrap_or_default();
    let short: String = who.container_id.chars().take(8).collect();
    let kill = if kind == Kind::Kill { "kill" } else { "" };
    id_of(&rfc3339(wall_ms), &[kill, &who.namespace, &who.pod, &who.container, &restart, &short])
}

fn open_log(c: &ContainerView) -> Option<cri::OpenLog> {
    let n = c.named.as_ref()?;
    Some(cri::open(n.folder.as_deref()?, n.restart?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_and_the_end_of_its_container_have_two_names() {
        let who = ContainerRef { pod: "llm-0".into(), container: "vllm".into(), ..ContainerRef::default() };
        let kinds = [Kind::Kill, Kind::Death, Kind::End].map(|k| name_of(k, 1_700_000_000_000, &who));
        assert_ne!(kinds[0], kinds[1]);
        assert_eq!(kinds[1], kinds[2]);
    }
}
