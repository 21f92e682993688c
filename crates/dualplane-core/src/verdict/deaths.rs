//! Whose death is judged, and what the API says of it.

use super::candidates::oom_counter;
use super::instance;
use crate::evidence::{
    Bundle, Container, ContainerKind, ContainerStatus, Event, Judged, Pod, State, Termination,
};
use crate::facts::Facts;
use crate::time::Stamp;
use crate::units::Bytes;

/// The workload that an incident is about.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Index of the pod in the bundle.
    pub pod_index: Option<usize>,
    /// Pod.
    pub pod: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
    /// UID.
    pub uid: Option<String>,
    /// Container that died, or the first.
    pub container: Option<String>,
    /// Kind of that container.
    pub container_kind: ContainerKind,
    /// Node.
    pub node: Option<String>,
    /// Restarts of that container.
    pub restarts: Option<u64>,
    /// Its last end.
    pub death: Option<Termination>,
    /// Since when it runs, where nothing of it has ended.
    pub runs_since: Option<Stamp>,
    /// Its memory limit and request.
    pub memory_limit: Option<Bytes>,
    /// Its memory request.
    pub memory_request: Option<Bytes>,
    /// Index of the kernel's record of its kill in the facts: a node's log holds those of other pods as well.
    pub kill: Option<usize>,
}

impl Subject {
    /// The pod in its bundle.
    #[must_use]
    pub fn pod_of<'a>(&self, bundle: &'a Bundle) -> Option<&'a Pod> {
        bundle.pods.get(self.pod_index?)
    }

    /// Whether a container is the one that is judged. A scrap may not name it, and its container has no name then.
    pub(in crate::verdict) fn is_container(&self, c: &Container) -> bool {
        c.name == self.container.as_deref().unwrap_or_default()
    }

    /// The file that tells of the pod; empty where none does.
    #[must_use]
    pub fn file(&self, bundle: &Bundle) -> String {
        self.pod_of(bundle).map(|p| p.file.clone()).unwrap_or_default()
    }
}

impl Subject {
    /// Whether an event speaks of the end that is judged: of this pod (a StatefulSet gives its name to the next one,
    /// so the UID decides where both are known), of this container, and not from before the run began.
    #[must_use]
    pub fn concerned_by(&self, event: &Event, bundle: &Bundle) -> bool {
        const SLACK_MS: i64 = 60 * 1000;
        if !self.is_of(event, bundle) {
            return false;
        }
        if event.object.0 != "Pod" || self.pod.is_none() {
            return true;
        }
        // The scheduler speaks of a pod that has no node yet.
        if event.reason == "FailedScheduling" && self.found_a_node(bundle) {
            return false;
        }
        let died = self.death.as_ref().and_then(|d| d.container_id.as_deref());
        let id = died.map(|id| id.rsplit('/').next().unwrap_or(id));
        if event.told_instance().zip(id).is_some_and(|(told, id)| !id.starts_with(told)) {
            return false;
        }
        let began = self.death.as_ref().and_then(|d| d.started);
        let before = event.last.or(event.first).zip(began).and_then(|(at, began)| at.ms_until(began));
        let ended = self.death.as_ref().and_then(|d| d.finished);
        let after = ended.zip(event.first).and_then(|(ended, at)| ended.ms_until(at));
        before.is_none_or(|ms| ms <= SLACK_MS) && after.is_none_or(|ms| ms <= SLACK_MS)
    }

    /// The code with which a server that lives refused its probe: 404 for a path that it does not have, 401 or 403. It was alive
    /// and well then, and only the probe is wrong.
    #[must_use]
    pub fn refused_probe(&self, bundle: &Bundle) -> Option<u16> {
        let failed = bundle.events.iter().filter(|e| e.reason == "Unhealthy" && self.concerned_by(e, bundle));
        failed
            .filter_map(|e| e.message.rsplit_once("statuscode: ")?.1.get(..3)?.parse().ok())
            .find(|code| (400..500).contains(code))
    }

    /// The pod ran, or an event says that it was given a node.
    fn found_a_node(&self, bundle: &Bundle) -> bool {
        self.death.is_some()
            || self.pod_of(bundle).is_some_and(Pod::was_scheduled)
            || bundle.events.iter().any(|e| e.reason == "Scheduled" && self.is_of(e, bundle))
    }

    /// Whether an event speaks of this pod and container, of whichever of its runs.
    #[must_use]
    pub(super) fn is_of(&self, event: &Event, bundle: &Bundle) -> bool {
        if event.object.0 != "Pod" {
            return true;
        }
        let Some(name) = &self.pod else { return true };
        let pod = self.pod_of(bundle);
        let uid = event.object.2.as_str();
        let own = |p: &Pod| p.uid.is_empty() || p.uid == uid || p.config_hash.as_deref() == Some(uid);
        if event.object.1 != *name || !uid.is_empty() && !pod.is_none_or(own) {
            return false;
        }
        // Two namespaces have a pod of one name, as the StatefulSets of two teams do.
        let elsewhere = |n: &String| !n.is_empty() && !event.namespace.is_empty() && *n != event.namespace;
        if self.namespace.as_ref().is_some_and(elsewhere) {
            return false;
        }
        // "Container fluent-bit failed liveness probe" names it where the field path does not.
        let said = event.message.strip_prefix("Container ").and_then(|m| m.split_once(" failed "));
        let container = said.map(|(name, _)| name).or(event.container.as_deref());
        container.zip(self.container.as_deref()).is_none_or(|(theirs, ours)| theirs == ours)
    }
}

impl Termination {
    /// How it ended, where the runtime saw no OOM kill.
    #[must_use]
    pub fn not_oom_killed(&self) -> bool {
        // A cut-out that lacks the reason may lack that one.
        !self.oom_killed() && !self.reason.is_empty()
    }
}

/// Picks the pod and container that died, the gravest first.
pub(super) fn subject(bundle: &Bundle, facts: &Facts) -> Subject {
    let mut best: Option<(u32, usize, &Pod, &Container, Option<Termination>)> = None;
    // What was recorded of one container is judged for that one, however its neighbours ended.
    let named = |c: &Container, j: &Judged| c.name == j.container;
    let all = || bundle.pods.iter().flat_map(|p| &p.containers);
    let judged = bundle.judged.as_ref().filter(|j| all().any(|c| named(c, j)));
    for (i, pod) in bundle.pods.iter().enumerate() {
        for container in pod.containers.iter().filter(|c| judged.is_none_or(|j| named(c, j))) {
            let end = container.status.as_ref().and_then(|s| match judged {
                Some(j) => instance::recorded(s, j),
                None => instance::of_two(s, facts).cloned(),
            });
            if container.overcame().is_some() && pod.containers.len() > 1 {
                continue;
            }
            // Nothing died, and a counter tells of a kill inside: that container is what is to be looked at.
            let counted = end.is_none() && oom_counter(bundle, pod, container).is_some();
            // Of pods that live it is the one whose memory was looked at.
            let measured = end.is_none()
                && (bundle.tops.iter().any(|t| t.pod == pod.name)
                    || bundle.limits.iter().any(|l| l.pod == pod.name && !l.pod.is_empty()));
            let score = gravity(pod, container, end.as_ref(), facts)
                + if counted { 15 } else { 0 }
                + if measured { 2 } else { 0 };
            if best.as_ref().is_none_or(|(s, ..)| score > *s) {
                best = Some((score, i, pod, container, end));
            }
        }
    }
    let Some((_, i, pod, container, end)) = best else {
        let pod = bundle.pods.first();
        return Subject {
            pod_index: pod.map(|_| 0),
            pod: pod.map(|p| p.name.clone()),
            namespace: pod.map(|p| p.namespace.clone()),
            node: pod.and_then(|p| p.node.clone()).or_else(|| bundle.nodes.first().map(|n| n.name.clone())),
            ..Subject::default()
        };
    };
    let runs_since = container.status.as_ref().and_then(|s| match s.state {
        State::Running { started } if end.is_none() => started,
        _ => None,
    });
    let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
    Subject {
        pod_index: Some(i),
        pod: some(&pod.name),
        namespace: some(&pod.namespace),
        uid: some(&pod.uid),
        container: some(&container.name),
        container_kind: container.kind,
        node: pod.node.clone(),
        restarts: container.status.as_ref().and_then(|s| s.restarts),
        death: end,
        runs_since,
        memory_limit: container.memory_limit.or(pod.memory_limit),
        memory_request: container.memory_request,
        kill: None,
    }
}

/// A log's last line and its container's end lie no further apart than this.
const SAME_END_MS: i64 = 10 * 60 * 1000;

fn gravity(pod: &Pod, c: &Container, end: Option<&Termination>, facts: &Facts) -> u32 {
    let mut score = match end {
        Some(t) if t.oom_killed() || t.message.contains("OOM-killed") => 80,
        Some(t) if t.ended_with(137) || t.ended_with(135) => 60,
        Some(t) if !t.clean() => 50,
        Some(_) => 10,
        None => 0,
    };
    if let Some(s) = &c.status {
        if matches!(&s.state, State::Waiting { reason, .. } if reason == "CrashLoopBackOff" || reason.contains("Error"))
        {
            score += 10;
        }
        if s.restarts.is_some_and(|n| n > 0) {
            score += 3;
        }
    }
    // The kernel names the container.
    let ids: Vec<&str> = c.status.iter().flat_map(ContainerStatus::instance_ids).collect();
    if facts.ooms.iter().any(|o| o.container_id().is_some_and(|id| ids.contains(&id.as_str()))) {
        score += 20;
    }
    // It names the pod: a kill in its sandbox, or in a container of which the API holds nothing.
    if !pod.uid.is_empty() && facts.ooms.iter().any(|o| o.pod_uid().as_deref() == Some(pod.uid.as_str())) {
        score += 10;
    }
    // The logs at hand end when this container did.
    if let Some(finished) = end.and_then(|t| t.finished) {
        let mut logs = facts.logs.iter().filter(|l| !l.kernel).filter_map(|l| l.last?.ms_until(finished));
        if logs.any(|ms| ms.abs() <= SAME_END_MS) {
            score += 40;
        }
    }
    if pod.reason.as_deref() == Some("Evicted") {
        score += 5;
    }
    // The server before its helpers: a log shipper killed at its own limit does not explain the server's own end.
    let died = end.is_some_and(|t| !t.clean());
    if c.kind == ContainerKind::Main {
        score += if died { 35 } else { 2 };
    }
    // A container with a GPU, or with an engine's image, is the server.
    if !c.devices.is_empty() || facts.engine.all.by_image(&c.image).is_some() {
        score += if died { 60 } else { 1 };
    }
    score
}
/// The container that died is one of those that run before the server.
pub(super) fn in_init_container(bundle: &Bundle, subject: &Subject) -> bool {
    let Some(name) = &subject.container else { return false };
    let mut containers = subject.pod_of(bundle).into_iter().flat_map(|p| &p.containers);
    containers.any(|c| c.name == *name && c.kind == ContainerKind::Init)
}
