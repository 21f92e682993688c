//! Candidates for the first cause: every source says what it has, with its weight and its evidence.

use super::{Cited, Class, Confidence, Phase, Subject, Trigger, metrics, vram};
use crate::evidence::{Bundle, Role};
use crate::facts::{Constraint, Facts, Hit, OomRecord, Place, XidEvent};
use crate::knowledge::{Knowledge, Mark, XidKind};
use crate::time::Stamp;

/// Which source speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Kernel log.
    Kernel,
    /// Event.
    Event,
    /// Pod status.
    Status,
    /// Container log.
    Log,
    /// Metrics.
    Metrics,
}

/// What a candidate proves, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A memory error or GPU fault that ended something.
    Fatal,
    /// The server goes on.
    Degraded,
    /// Only with a failure behind it.
    Suspect,
}

/// A possible first cause.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Class.
    pub class: Class,
    /// Weight.
    pub weight: Weight,
    /// Source.
    pub from: From,
    /// The log's role.
    pub role: Role,
    /// Phase.
    pub phase: Phase,
    /// How sure.
    pub confidence: Confidence,
    /// What happened, one sentence.
    pub what: String,
    /// The signature or parser that knows it.
    pub signature: String,
    /// Where the line is; `None` where the proof is no line.
    pub place: Option<Place>,
    /// The line.
    pub text: String,
    /// When.
    pub stamp: Option<Stamp>,
    /// Evidence for.
    pub supports: Vec<Cited>,
    /// Evidence against.
    pub against: Vec<Cited>,
}

impl Candidate {
    /// Its line as a trigger.
    #[must_use]
    pub fn trigger(&self) -> Option<Trigger> {
        let place = self.place.clone().filter(|p| p.line.is_some() || self.from == From::Event)?;
        Some(Trigger { place, text: self.text.clone(), stamp: self.stamp, signature: self.signature.clone() })
    }
}

/// Collects the candidates of all sources.
pub(super) fn collect(
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
    subject: &Subject,
) -> Vec<Candidate> {
    let mut all = Vec::new();
    let global = super::order::relevant_ooms(bundle, facts, subject);
    for (oom, sure) in &global {
        all.push(kernel_oom(oom, *sure, subject, facts));
    }
    if let Some(c) = oom_killed_status(bundle, facts, subject, &global) {
        all.push(c);
    }
    for hit in &facts.object_hits {
        object(hit, bundle, facts, subject, &mut all);
    }
    xids(facts, knowledge, &mut all);
    for hit in &facts.hits {
        let weight = match hit.mark {
            Mark::Fatal => Weight::Fatal,
            Mark::Degraded => Weight::Degraded,
            Mark::Suspect => Weight::Suspect,
            _ => continue,
        };
        if let Some(class) = hit.class.filter(|_| !of_other_container(hit, bundle)) {
            let weight = weigh_recovery(hit, weight, facts);
            all.push(log_hit(hit, class, weight, bundle, facts, knowledge));
        }
    }
    for hit in facts.hits.iter().filter(|h| h.mark == Mark::Failure) {
        all.extend(full_memory_volume(hit, bundle));
    }
    metrics::preemptions(bundle, &mut all);
    metrics::oom_killed(bundle, subject, facts, &mut all);
    metrics::xids(bundle, knowledge, facts, &mut all);
    all
}

fn kernel_oom(oom: &OomRecord, sure: Confidence, subject: &Subject, facts: &Facts) -> Candidate {
    let node = matches!(oom.constraint, Constraint::Global | Constraint::Numa) || oom.node_allocatable();
    let class = if node { Class::HostNodeOom } else { Class::HostOomKilled };
    let victim = oom.victims.first();
    let who = victim.map_or_else(|| "a process".to_owned(), |v| format!("{} (host pid {})", v.comm, v.pid));
    let more =
        if oom.victims.len() > 1 { format!(" and {} more", oom.victims.len() - 1) } else { String::new() };
    let what = match (oom.constraint, oom.limit.or(subject.memory_limit)) {
        (Constraint::Global, _) => {
            format!("the kernel's global OOM killer ended {who}{more}: the whole node was out of RAM")
        }
        (Constraint::Numa, _) => format!(
            "the kernel's OOM killer ended {who}{more}: the NUMA nodes it was bound to were out of RAM"
        ),
        (_, limit) if oom.node_allocatable() => format!(
            "the kernel OOM-killed {who}{more} at the limit of all pods of the node together{} (node allocatable): the node was full, not this container's limit",
            limit.filter(|_| oom.limit.is_some()).map(|l| format!(", {l}")).unwrap_or_default()
        ),
        (_, Some(limit)) if oom.pod_level() => {
            format!(
                "the kernel OOM-killed {who}{more} at a memory limit of {limit} that covers the whole pod"
            )
        }
        (_, Some(limit)) => {
            format!("the kernel OOM-killed {who}{more} at the container's memory limit of {limit}")
        }
        (_, None) => format!("the kernel OOM-killed {who}{more} at its cgroup's memory limit"),
    };
    let mut supports =
        vec![Cited::at(format!("the OOM killer's record opens here ({})", constraint_word(oom)), &oom.place)];
    for v in &oom.victims {
        let part =
            |name: &str, b: Option<crate::units::Bytes>| b.map(|b| format!("{name} {b}")).unwrap_or_default();
        let parts = [part("anon", v.anon), part("shmem", v.shmem), part("file", v.file)];
        let parts: Vec<&String> = parts.iter().filter(|p| !p.is_empty()).collect();
        let parts = parts.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", ");
        supports.push(Cited::at(format!("killed {} (host pid {}): {parts}", v.comm, v.pid), &oom.place));
        if supports.len() > 6 {
            break;
        }
    }
    if let (Some(usage), Some(limit)) = (oom.usage, oom.limit) {
        supports.push(Cited::at(format!("cgroup usage {usage} of limit {limit}"), &oom.place));
    }
    Candidate {
        class,
        weight: Weight::Fatal,
        from: From::Kernel,
        role: Role::Unsaid,
        phase: end_phase(facts),
        confidence: if oom.constraint == Constraint::Unsaid { Confidence::Medium } else { sure },
        what,
        signature: "kernel.oom_killer".into(),
        place: Some(oom.place.clone()),
        text: oom.text.clone(),
        stamp: oom.stamp,
        supports,
        against: Vec::new(),
    }
}

fn constraint_word(oom: &OomRecord) -> &'static str {
    match oom.constraint {
        Constraint::Memcg => "constraint=CONSTRAINT_MEMCG: a cgroup limit",
        Constraint::Global => "constraint=CONSTRAINT_NONE: the whole node",
        Constraint::Numa => "constraint=CPUSET/MEMORY_POLICY: some NUMA nodes",
        Constraint::Unsaid => "the lines that tell its scope are missing",
    }
}

/// What the server was doing when the log of the dead instance ended.
pub(super) fn end_phase(facts: &Facts) -> Phase {
    let mut logs = facts.logs.iter().filter(|l| !l.kernel && l.phase != Phase::Unknown);
    logs.clone()
        .find(|l| l.role == Role::Previous)
        .or_else(|| logs.next())
        .map_or(Phase::Unknown, |l| l.phase)
}

/// `reason: OOMKilled`: some process of the container was OOM-killed during its life.
fn oom_killed_status(
    bundle: &Bundle,
    facts: &Facts,
    subject: &Subject,
    ooms: &[(&OomRecord, Confidence)],
) -> Option<Candidate> {
    let death = subject.death.as_ref().filter(|d| d.oom_killed())?;
    let pod = subject.pod_index.and_then(|i| bundle.pods.get(i))?;
    let place = Place { file: pod.file.clone(), line: None };
    let name = subject.container.as_deref().unwrap_or("?");
    let mut supports =
        vec![Cited::at(format!("container {name}: reason OOMKilled, exit code {}", death.exit_code), &place)];
    let mut against = Vec::new();
    let mut confidence = if death.exit_code == 137 { Confidence::High } else { Confidence::Medium };
    if death.exit_code != 137 {
        against.push(Cited::at(
            format!("exit code {}: the killed process was not what ended the container, or it ended by itself afterwards", death.exit_code),
            &place,
        ));
    }
    let limit = subject.memory_limit;
    let node_oom = ooms.iter().any(|(o, _)| o.constraint == Constraint::Global);
    let system_oom = bundle.events.iter().find(|e| e.reason == "SystemOOM");
    // Without a limit on the container (or its pod) no cgroup of its own can be exceeded.
    let class = if node_oom || limit.is_none() && system_oom.is_some() {
        Class::HostNodeOom
    } else if limit.is_none() && pod.containers.iter().all(|c| c.memory_limit.is_none()) {
        confidence = Confidence::Medium;
        against.push(Cited::at("no container of the pod has a memory limit, so it was the node (or a limit on the pod itself) that ran out", &place));
        Class::HostNodeOom
    } else {
        Class::HostOomKilled
    };
    if let Some(limit) = limit {
        supports.push(Cited::at(format!("memory limit {}", limit.k8s()), &place));
    }
    if let Some(e) = system_oom.filter(|_| class == Class::HostOomKilled) {
        let cite = Place { file: e.file.clone(), line: e.line };
        against.push(Cited::at(
            "a SystemOOM event stands on the node: it may have been the node that ran out",
            &cite,
        ));
        confidence = Confidence::Medium;
    }
    let at = limit.map_or(String::new(), |l| format!(" at its memory limit of {}", l.k8s()));
    let what = match class {
        Class::HostNodeOom => format!(
            "container {name} was OOM-killed without a memory limit of its own: the node was out of RAM"
        ),
        _ => format!("container {name} was OOM-killed{at}"),
    };
    Some(Candidate {
        class,
        weight: Weight::Fatal,
        from: From::Status,
        role: Role::Unsaid,
        phase: end_phase(facts),
        confidence,
        what,
        signature: "kubernetes.oom_killed".into(),
        place: Some(place),
        text: String::new(),
        stamp: death.finished,
        supports,
        against,
    })
}

fn object(hit: &Hit, bundle: &Bundle, facts: &Facts, subject: &Subject, all: &mut Vec<Candidate>) {
    let (Mark::Fatal | Mark::Degraded, Some(class)) = (hit.mark, hit.class) else { return };
    // Events of other pods say nothing about this one; events of the node do.
    let event = bundle
        .events
        .iter()
        .find(|e| e.message == hit.text && e.line == hit.place.line && e.file == hit.place.file);
    let from = if event.is_some() { From::Event } else { From::Status };
    if let (Some(e), Some(pod)) = (event, &subject.pod) {
        if e.object.0 == "Pod" && e.object.1 != *pod {
            return;
        }
        // A node's distress counts where it touches this pod's death: its node, and near in time.
        if e.object.0 == "Node" && subject.node.as_ref().is_some_and(|n| *n != e.object.1) {
            return;
        }
        if e.object.0 == "Node" && !node_event_matters(e, subject) {
            return;
        }
    }
    all.push(Candidate {
        class,
        weight: if hit.mark == Mark::Fatal { Weight::Fatal } else { Weight::Degraded },
        from,
        role: Role::Unsaid,
        phase: if hit.phase == Phase::Unknown { end_phase(facts) } else { hit.phase },
        confidence: Confidence::High,
        what: hit.meaning.clone(),
        signature: hit.id.clone(),
        place: Some(hit.place.clone()),
        text: hit.text.clone(),
        stamp: hit.stamp,
        supports: vec![Cited::at(crate::text::shorten(&hit.text, 240), &hit.place)],
        against: Vec::new(),
    });
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

fn xids(facts: &Facts, knowledge: &Knowledge, all: &mut Vec<Candidate>) {
    let kind = |x: &XidEvent| knowledge.xid(x.code).map(|k| k.kind);
    let ends = |x: &&XidEvent| {
        x.caused_by.is_none() && !x.nonfatal && !matches!(kind(x), Some(XidKind::Cleanup | XidKind::Info))
    };
    // A 45 that names its cause is that Xid's evidence where its own line is lost.
    let lost = |x: &&XidEvent| {
        x.caused_by.is_some_and(|c| {
            let hard = knowledge.xid(c).is_none_or(|k| !matches!(k.kind, XidKind::Cleanup | XidKind::Info));
            hard && !facts.xids.iter().any(|o| o.code == c && !o.nonfatal)
        })
    };
    if let Some(x) = facts.xids.iter().find(lost).filter(|_| !facts.xids.iter().any(|x| ends(&x))) {
        let code = x.caused_by.unwrap_or(x.code);
        // The driver may call the event itself not fatal; that it tore channels down shows otherwise.
        let x = facts.xids.iter().find(|o| o.code == code).unwrap_or(x);
        let name = knowledge.xid(code).map_or("not in the catalogue", |k| k.name.as_str());
        all.push(Candidate {
            class: Class::XidHardware,
            weight: Weight::Fatal,
            from: From::Kernel,
            role: Role::Unsaid,
            phase: end_phase(facts),
            confidence: Confidence::Medium,
            what: format!(
                "the driver cleaned up channels of the GPU at {} because of an Xid {code}: {name}",
                x.pci
            ),
            signature: format!("xid.{}", x.code),
            place: Some(x.place.clone()),
            text: x.text.clone(),
            stamp: x.stamp,
            supports: vec![Cited::at(format!("an Xid 45 says \"caused by previous Xid {code}\""), &x.place)],
            against: if x.code == code {
                Vec::new()
            } else {
                vec![Cited::plain(format!("the line of Xid {code} itself is not in the evidence"))]
            },
        });
    }
    for x in facts.xids.iter().filter(ends).take(64) {
        let known = knowledge.xid(x.code);
        let name = known.map_or("not in the catalogue", |k| k.name.as_str());
        let application = known.is_some_and(|k| k.kind == XidKind::Application);
        let mut supports = vec![Cited::at(format!("Xid {} on {}: {name}", x.code, x.pci), &x.place)];
        for other in facts.xids.iter().filter(|o| o.pci == x.pci && o.place != x.place).take(5) {
            let name = knowledge.xid(other.code).map_or("", |k| k.name.as_str());
            supports.push(Cited::at(format!("Xid {} {name}", other.code), &other.place));
        }
        all.push(Candidate {
            class: Class::XidHardware,
            weight: Weight::Fatal,
            from: From::Kernel,
            role: Role::Unsaid,
            phase: end_phase(facts),
            confidence: match (known.is_some(), application) {
                (true, false) => Confidence::High,
                (true, true) => Confidence::Medium,
                (false, _) => Confidence::Low,
            },
            what: format!("the GPU at {} reported Xid {}: {name}", x.pci, x.code),
            signature: format!("xid.{}", x.code),
            place: Some(x.place.clone()),
            text: x.text.clone(),
            stamp: x.stamp,
            supports,
            against: if application {
                vec![Cited::plain("this Xid is most often caused by the program (an illegal access in a kernel), not by worn hardware")]
            } else {
                Vec::new()
            },
        });
    }
}

/// The line names a container, and it is none of the pods at hand.
fn of_other_container(hit: &Hit, bundle: &Bundle) -> bool {
    let Some(id) = hit.word("container_id") else { return false };
    let mut ids =
        bundle.pods.iter().flat_map(|p| &p.containers).filter_map(|c| c.status.as_ref()).flat_map(|s| {
            s.terminations().filter_map(|t| t.container_id.as_deref()).chain(s.container_id.as_deref())
        });
    let mut any = false;
    let same = ids.any(|known| {
        any = true;
        known.starts_with(&id) || id.starts_with(known)
    });
    any && !same
}

/// A load that failed and then went on was no end: llama.cpp retries with smaller buffers and comes up.
fn weigh_recovery(hit: &Hit, weight: Weight, facts: &Facts) -> Weight {
    // TensorRT's builder tries tactics: one that does not fit is skipped, and the next lines say so.
    const TACTIC_LINES: u64 = 5;
    let skipped = hit.id.starts_with("tensorrt_llm.trt_")
        && facts.hits.iter().any(|h| {
            h.mark == Mark::Benign
                && h.place.file == hit.place.file
                && h.place.line > hit.place.line
                && h.place.line <= hit.place.line.map(|l| l + TACTIC_LINES)
        });
    if skipped {
        return Weight::Suspect;
    }
    let retries = hit.id.starts_with("llama_cpp.") || hit.id.starts_with("ollama.");
    if weight != Weight::Fatal || !retries || hit.class != Some(Class::CudaOomLoad) {
        return weight;
    }
    let log = facts.logs.iter().find(|l| l.file == hit.place.file);
    let up_again = log.is_some_and(|l| l.last_ready > hit.place.line);
    let gave_up = facts.hits.iter().any(|h| {
        matches!(h.mark, Mark::Cascade | Mark::Death | Mark::Failure)
            && h.place.file == hit.place.file
            && h.place.line > hit.place.line
    });
    if up_again && !gave_up { Weight::Suspect } else { weight }
}

/// "No space left on device" below the mount of a Memory-medium volume: the tmpfs of that size is full, not a disk.
fn full_memory_volume(hit: &Hit, bundle: &Bundle) -> Option<Candidate> {
    if !hit.text.contains("No space left on device") {
        return None;
    }
    let (pod, path, size) = bundle.pods.iter().find_map(|p| {
        let mounts = p.containers.iter().flat_map(|c| p.memory_mounts(c));
        mounts
            .into_iter()
            .find(|(m, _)| !m.is_empty() && hit.text.contains(&format!("{m}/")))
            .map(|(m, s)| (p, m, s))
    })?;
    let size = size.map_or(String::new(), |s| format!(" of {}", s.k8s()));
    Some(Candidate {
        class: Class::HostAllocFailure,
        weight: Weight::Fatal,
        from: From::Log,
        role: hit.role,
        phase: hit.phase,
        confidence: Confidence::High,
        what: format!(
            "the Memory-medium volume{size} at {path} is full: host RAM that the pod was given, not a disk"
        ),
        signature: "volume.memory_full".into(),
        place: Some(hit.place.clone()),
        text: hit.text.clone(),
        stamp: hit.stamp,
        supports: vec![
            Cited::at(crate::text::shorten(hit.text.trim(), 240), &hit.place),
            Cited::at(
                format!("{path} is an emptyDir with medium Memory{size}"),
                &Place { file: pod.file.clone(), line: None },
            ),
        ],
        against: Vec::new(),
    })
}

fn log_hit(
    hit: &Hit,
    class: Class,
    weight: Weight,
    bundle: &Bundle,
    facts: &Facts,
    knowledge: &Knowledge,
) -> Candidate {
    let kernel =
        facts.logs.iter().any(|l| l.kernel && l.file == hit.place.file) || hit.id.starts_with("kernel.");
    let mut c = Candidate {
        class,
        weight,
        from: if kernel { From::Kernel } else { From::Log },
        role: hit.role,
        phase: if hit.phase == Phase::Unknown && kernel { end_phase(facts) } else { hit.phase },
        confidence: match weight {
            Weight::Fatal => Confidence::High,
            Weight::Degraded => Confidence::Medium,
            Weight::Suspect => Confidence::Low,
        },
        what: hit.meaning.clone(),
        signature: hit.id.clone(),
        place: Some(hit.place.clone()),
        text: hit.text.clone(),
        stamp: hit.stamp,
        supports: vec![Cited::at(crate::text::shorten(hit.text.trim(), 240), &hit.place)],
        against: Vec::new(),
    };
    if class.plane() == super::Plane::Gpu {
        vram::refine(&mut c, hit, bundle, facts, knowledge);
    }
    c
}
