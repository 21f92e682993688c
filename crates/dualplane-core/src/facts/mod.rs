//! Facts: what the evidence says, each with its place. Nothing here decides; `verdict` weighs them.

mod cut_trace;
mod engine;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod hit;
mod host_pools;
pub mod kernel_feed;
pub mod kernel_oom;
mod kernel_tasks;
pub(crate) mod lines;
mod maker;
pub(crate) mod openings;
pub(crate) mod owner;
mod pools;
pub mod quantised;
pub(crate) mod quote;
mod scan;
mod sentences;
mod settings;
mod summary;
pub(crate) mod trace;
pub mod vram;
mod worded;
pub mod xid;

pub(crate) use dualplane_base::Place;
pub use engine::{Engine, Flag};
pub use hit::{Exception, Hit};
pub use host_pools::{HostPool, prompt_cache_in_use};
pub use kernel_oom::{Constraint, OomRecord, Victim};
pub use kernel_tasks::Task;
pub use maker::Maker;
pub use pools::{MemoryPools, Pools};
pub use scan::NodeLogs;
pub(crate) use scan::{CONTEXT_LINES, KEPT_PER_SIGNATURE};
pub use summary::LogSummary;
pub use xid::{XidEvent, pci_address};

use crate::evidence::{Bundle, State};
use crate::knowledge::{Knowledge, Mark};
use crate::time::Stamp;
use crate::units::Bytes;
use dualplane_base::Phase;

/// Everything extracted from one bundle.
#[derive(Debug, Default)]
pub struct Facts {
    /// Signature hits in all logs, in file order then line order.
    pub hits: Vec<Hit>,
    /// Hits in events and status messages.
    pub object_hits: Vec<Hit>,
    /// Exceptions that end tracebacks and that no signature knows.
    pub exceptions: Vec<Exception>,
    /// OOM-killer records.
    pub ooms: Vec<OomRecord>,
    /// Xid events.
    pub xids: Vec<XidEvent>,
    /// Kills at the limit of a cgroup that nothing names, while the pod ran: they may be of a process inside it.
    pub nameless_kills: Vec<OomRecord>,
    /// One summary a log.
    pub logs: Vec<LogSummary>,
    /// Engine, version, flags.
    pub engine: Engine,
    /// Who made the card.
    pub maker: Maker,
    /// A MIG instance is in use: profile or how it is known.
    pub mig: Option<Mig>,
    /// The GPU has no memory of its own, or one that the kernel sees as well.
    pub pools: Option<MemoryPools>,
    /// Pools of host memory beside the server's own heap.
    pub host_pools: Vec<HostPool>,
    /// A stamp with a year, for those that print none.
    pub reference: Option<Stamp>,
}

/// How it is known that the workload runs on a MIG instance.
#[derive(Debug, Clone)]
pub struct Mig {
    /// `1g.18gb`, where printed.
    pub profile: Option<String>,
    /// Size of the instance, where printed.
    pub size: Option<Bytes>,
    /// Card, where printed.
    pub card: Option<String>,
    /// Where.
    pub place: Place,
    /// What shows it.
    pub seen: MigSeen,
}

/// What shows a MIG instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigSeen {
    /// The pod requests this resource.
    Requested(String),
    /// A label of a metric.
    Metric {
        /// Metric.
        metric: String,
        /// Profile.
        profile: String,
    },
    /// A line of a log or a tool.
    Line(String),
    /// The product label of the node.
    Product(String),
    /// A tool lists an instance of the size that an error names.
    OfThisSize {
        /// Tool.
        tool: &'static str,
        /// Size.
        size: Bytes,
    },
}

/// Extracts all facts of a bundle. Total: odd input gives fewer facts.
#[must_use]
pub fn extract(bundle: &Bundle, knowledge: &Knowledge) -> Facts {
    extract_of(bundle, knowledge, None)
}

/// The same for one of several pods: `shared` keeps what a node's kernel log says for the next pod of that node.
#[must_use]
pub fn extract_shared(bundle: &Bundle, knowledge: &Knowledge, shared: &mut NodeLogs) -> Facts {
    extract_of(bundle, knowledge, Some(shared))
}

fn extract_of(bundle: &Bundle, knowledge: &Knowledge, mut shared: Option<&mut NodeLogs>) -> Facts {
    let mut facts = Facts::default();
    let mut owners = owner::Owners::of(bundle);
    for log in &bundle.logs {
        match &mut shared {
            Some(shared) if log.kernel => shared.scan(log, knowledge, &owners, &mut facts),
            _ => scan::scan(log, knowledge, &owners, &mut facts),
        }
    }
    owners.learn(&facts.ooms);
    facts.keep_own(&owners, knowledge);
    objects(bundle, knowledge, &mut facts);
    sentences::read(bundle, knowledge, &mut facts);
    facts.reference = reference(bundle, &facts);
    let reference = facts.reference;
    for hit in facts.hits.iter_mut().chain(&mut facts.object_hits) {
        hit.stamp = hit.stamp.map(|s| s.with_year_near(reference));
    }
    for oom in facts.ooms.iter_mut().chain(&mut facts.nameless_kills) {
        oom.stamp = oom.stamp.map(|s| s.with_year_near(reference));
    }
    // When it was is known only now.
    facts.nameless_kills.retain(|o| owners.may_be_inside(o));
    for xid in &mut facts.xids {
        xid.stamp = xid.stamp.map(|s| s.with_year_near(reference));
    }
    for log in &mut facts.logs {
        log.first = log.first.map(|s| s.with_year_near(reference));
        log.last = log.last.map(|s| s.with_year_near(reference));
        log.last_served_at = log.last_served_at.map(|s| s.with_year_near(reference));
    }
    for log in 0..facts.logs.len() {
        take_zone_off(bundle, &mut facts, log);
    }
    facts.engine = engine::engine(bundle, &facts, knowledge);
    facts.maker = maker::maker(bundle, &facts);
    facts.mig = mig(bundle, &facts);
    facts.pools = pools::pools(bundle, &facts, knowledge);
    facts.host_pools = host_pools::host_pools(bundle, &facts);
    facts
}

/// A log in local time ends whole zones away from all ends that the API knows; its stamps are moved to where it ends with
/// one of them.
fn take_zone_off(bundle: &Bundle, facts: &mut Facts, index: usize) {
    const SAME_END_MS: u64 = 10 * 60 * 1000;
    let Some((file, last)) =
        facts.logs.get(index).filter(|l| !l.kernel).and_then(|l| Some((l.file.clone(), l.last?)))
    else {
        return;
    };
    let ends = || {
        let pods = bundle.pods.iter().flat_map(|p| &p.containers).filter_map(|c| c.status.as_ref());
        pods.flat_map(|s| s.terminations()).filter_map(|t| t.finished)
    };
    if ends().any(|e| last.ms_until(e).is_none_or(|ms| ms.unsigned_abs() <= SAME_END_MS)) {
        return;
    }
    let Some(zone) = ends().find_map(|e| last.zone_until(e)).filter(|z| *z != 0) else { return };
    let moved = |s: &mut Option<Stamp>| *s = s.map(|s| s.moved(zone));
    if let Some(l) = facts.logs.get_mut(index) {
        l.zone_ms = Some(zone);
        moved(&mut l.first);
        moved(&mut l.last);
        moved(&mut l.last_served_at);
    }
    // A file that is given twice has its lines moved once.
    let first = facts.logs.iter().position(|l| l.file == file) == Some(index);
    facts.hits.iter_mut().filter(|h| first && h.place.file == file).for_each(|h| moved(&mut h.stamp));
}

/// Runs the signatures over what Kubernetes objects say in words.
fn objects(bundle: &Bundle, knowledge: &Knowledge, facts: &mut Facts) {
    for event in &bundle.events {
        let text = format!("{}: {}", event.reason, event.message);
        let place = Place { file: event.file.clone(), line: event.line };
        for m in knowledge.matches(&text, |_| false) {
            let Some(s) = knowledge.signature(m.id).filter(|s| s.of_objects()) else { continue };
            facts.object_hits.push(Hit::of(s, m, &place, &event.message, event.first.or(event.last)));
        }
    }
    for pod in &bundle.pods {
        let place = Place { file: pod.file.clone(), line: None };
        let mut texts = Vec::new();
        if let Some(reason) = &pod.reason {
            // A row of a table tells the reason alone.
            let message = pod.message.as_deref().unwrap_or_default();
            let quoted = if message.is_empty() { reason } else { message };
            texts.push((format!("{reason}: {message}"), quoted.to_owned(), None));
        }
        for c in pod.containers.iter().filter_map(|c| c.status.as_ref()) {
            for t in c.terminations() {
                texts.push((format!("{}: {}", t.reason, t.message), t.message.clone(), t.finished));
            }
            if let crate::evidence::State::Waiting { reason, message } = &c.state {
                texts.push((format!("{reason}: {message}"), message.clone(), None));
            }
        }
        for (text, message, stamp) in texts {
            for m in knowledge.matches(&text, |_| false) {
                let Some(s) = knowledge.signature(m.id).filter(|s| s.of_objects()) else { continue };
                facts.object_hits.push(Hit::of(s, m, &place, &message, stamp));
            }
        }
    }
}

/// A stamp with a year from some source of this incident, for those that print none.
fn reference(bundle: &Bundle, facts: &Facts) -> Option<Stamp> {
    let pods = bundle.pods.iter().flat_map(|p| &p.containers).filter_map(|c| c.status.as_ref());
    let ends = pods.flat_map(|s| s.terminations()).filter_map(|t| t.finished);
    let events = bundle.events.iter().filter_map(|e| e.last);
    let kernel = facts.ooms.iter().filter_map(|o| o.stamp).chain(facts.xids.iter().filter_map(|x| x.stamp));
    let logs = facts.logs.iter().filter_map(|l| l.first);
    let lines = facts.hits.iter().filter_map(|h| h.stamp);
    // Of a pod that only lives, when it began.
    let starts =
        bundle.pods.iter().flat_map(|p| &p.containers).filter_map(|c| match c.status.as_ref()?.state {
            State::Running { started } => started,
            _ => None,
        });
    ends.chain(events).chain(kernel).chain(logs).chain(lines).chain(starts).find(|s| s.has_year())
}

fn mig(bundle: &Bundle, facts: &Facts) -> Option<Mig> {
    for pod in &bundle.pods {
        for (name, _) in pod.containers.iter().flat_map(|c| &c.devices) {
            if let Some(profile) = name.strip_prefix("nvidia.com/mig-") {
                return Some(Mig {
                    profile: Some(profile.trim_end_matches(".shared").to_owned()),
                    size: None,
                    card: node_card(bundle),
                    place: Place { file: pod.file.clone(), line: None },
                    seen: MigSeen::Requested(name.clone()),
                });
            }
        }
    }
    for sample in &bundle.metrics {
        if let Some(profile) = sample.label("GPU_I_PROFILE").filter(|p| !p.is_empty()) {
            return Some(Mig {
                profile: Some(profile.to_owned()),
                size: None,
                card: sample.label("modelName").map(str::to_owned),
                place: Place { file: sample.file.clone(), line: Some(sample.line) },
                seen: MigSeen::Metric { metric: sample.name.clone(), profile: profile.to_owned() },
            });
        }
    }
    if let Some(m) = facts.logs.iter().find_map(|l| l.mig.clone()) {
        return Some(m);
    }
    if let Some(m) = listed_instance(bundle) {
        return Some(m);
    }
    for node in &bundle.nodes {
        if let Some((_, product)) =
            node.labels.iter().find(|(k, v)| k == "nvidia.com/gpu.product" && v.contains("-MIG-"))
        {
            let (card, profile) = product.split_once("-MIG-")?;
            return Some(Mig {
                profile: Some(profile.to_owned()),
                size: None,
                card: Some(card.to_owned()),
                place: Place { file: node.name.clone(), line: None },
                seen: MigSeen::Product(product.clone()),
            });
        }
    }
    None
}

/// The instance that a tool lists, where all it lists are alike: of different ones nothing tells which is ours, and where
/// a card without instances stands beside them, ours may be that one.
fn listed_instance(bundle: &Bundle) -> Option<Mig> {
    let whole = |s: &crate::evidence::gpu_model::GpuSnapshot| {
        let split = |g: &&crate::evidence::gpu_model::Gpu| {
            g.mig_enabled || s.mig.iter().any(|m| m.gpu.is_some() && m.gpu == g.index)
        };
        s.gpus.iter().any(|g| !split(&g))
    };
    let listed: Vec<_> = bundle.gpus.iter().filter(|s| !s.mig.is_empty()).collect();
    if listed.iter().any(|s| whole(s)) {
        return None;
    }
    let mut found: Option<Mig> = None;
    for (s, m) in listed.iter().flat_map(|s| s.mig.iter().map(move |m| (s, m))) {
        let new = Mig {
            profile: m.profile.clone(),
            size: m.total,
            card: m.card.clone(),
            place: Place { file: s.file.clone(), line: Some(m.line) },
            seen: MigSeen::Line(m.text.clone()),
        };
        let Some(f) = &mut found else {
            found = Some(new);
            continue;
        };
        let differ = f.profile.is_some() && new.profile.is_some() && f.profile != new.profile
            || f.size.is_some() && new.size.is_some() && f.size != new.size;
        if differ {
            return None;
        }
        f.profile = f.profile.take().or(new.profile);
        f.size = f.size.or(new.size);
        f.card = f.card.take().or(new.card);
    }
    found
}

fn node_card(bundle: &Bundle) -> Option<String> {
    let labels = bundle.nodes.iter().flat_map(|n| &n.labels);
    labels.filter(|(k, _)| k == "nvidia.com/gpu.product").map(|(_, v)| v.clone()).next()
}

impl Facts {
    /// Leaves out what the kernel says of somebody else.
    fn keep_own(&mut self, owners: &owner::Owners, knowledge: &Knowledge) {
        use owner::Whose;
        self.hits.retain(|h| owners.of_hit(h) != Whose::Another);
        self.nameless_kills = self.ooms.iter().filter(|o| owner::nameless(o)).cloned().collect();
        self.ooms.retain(|o| owners.of_record(o) != Whose::Another);
        self.xids.retain(|x| owners.of_xid(x, knowledge) != Whose::Another);
    }

    /// All hits with one mark.
    pub fn marked(&self, mark: Mark) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(move |h| h.mark == mark)
    }

    /// A memory figure of a hit that some signature captured, the latest first.
    #[must_use]
    pub fn last_memory(&self, id: &str, group: &str) -> Option<(Bytes, &Hit)> {
        self.hits.iter().rev().filter(|h| h.id == id).find_map(|h| Some((h.memory(group)?, h)))
    }

    /// Whether any log holds lines that are known for what they are; a chat message is no log.
    #[must_use]
    pub fn has_life(&self) -> bool {
        self.logs.iter().any(|l| self.is_log(l))
    }

    /// Whether what the server itself wrote is in the evidence.
    #[must_use]
    pub fn has_server_log(&self) -> bool {
        self.logs.iter().any(|l| !l.kernel && self.is_log(l))
    }

    /// Whether a text is a log: it is a kernel's, tells the time, or holds a line that is known.
    #[must_use]
    pub fn is_log(&self, log: &LogSummary) -> bool {
        let known = log.kernel || log.first.is_some() || log.phase != Phase::Unknown || log.alarm.is_some();
        log.lines > 0
            && (known
                || self.hits.iter().any(|h| h.place.file == log.file)
                || self.exceptions.iter().any(|e| e.place.file == log.file))
    }
}
