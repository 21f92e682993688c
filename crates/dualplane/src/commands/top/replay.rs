//! Frames out of a bundle: its series, whoever recorded them (the node's agent, or Prometheus), put on one time line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dualplane_base::order::Order as _;
use dualplane_base::time::{Stamp, parse_rfc3339};
use dualplane_core::evidence::metrics::Sample;
use dualplane_core::evidence::{Bundle, RawFile};
use dualplane_core::knowledge::Knowledge;
use dualplane_engines::Engines;

use super::frame::{Container, Engine, Frame, Gpu, Holder, Node, SCHEMA, Vram};
use crate::commands::Failure;
use dualplane_input::{self as input, Sieve};

/// Frames of one replay: an hour at a second.
const MAX_FRAMES: usize = 3600;
/// A value counts until its next sample, and no longer than this behind its last: Prometheus' own rule is 5 minutes.
const STALE_MS: i64 = 300_000;
const MIB: f64 = 1048576.0;

/// A bundle to be played.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) frames: Vec<Frame>,
    /// The frame of the death, where the bundle tells when it was.
    pub(crate) death: Option<usize>,
}

/// Reads a bundle.
pub(crate) fn read(path: &Path, knowledge: &Knowledge) -> Result<Recording, Failure> {
    let mut incidents = input::read(&[path.to_owned()], &Sieve::new(knowledge))?;
    // A folder of several: the first, as names begin with the time or the pod.
    let incident = if incidents.is_empty() { input::Incident::default() } else { incidents.swap_remove(0) };
    let died = died_at(&incident.files);
    let gaps = incident.gaps.iter().map(|g| format!("{}: {}", g.what, g.why)).collect();
    let bundle = Bundle::from_files(incident.files);
    let recording = frames(&bundle, died, gaps);
    if recording.frames.is_empty() {
        return Err(Failure::NoSeries(path.display().to_string()));
    }
    Ok(recording)
}

/// `died_at` of the manifest.
fn died_at(files: &[RawFile]) -> Option<i64> {
    let manifest = files.iter().find(|f| f.name.rsplit('/').next() == Some("manifest.json"))?;
    let value: serde_json::Value = serde_json::from_slice(&manifest.bytes).ok()?;
    ms(parse_rfc3339(value.get("died_at")?.as_str()?)?)
}

fn ms(stamp: Stamp) -> Option<i64> {
    match stamp {
        Stamp::Wall { ms, .. } => Some(ms),
        Stamp::Boot { .. } => None,
    }
}

/// Samples by time, and all frames of them.
fn frames(bundle: &Bundle, died: Option<i64>, gaps: Vec<String>) -> Recording {
    let mut samples: Vec<(i64, &Sample)> = bundle
        .metrics
        .iter()
        .filter(|s| s.value.is_finite() && is_shown(&s.name))
        .filter_map(|s| Some((s.stamp.and_then(ms)?, s)))
        .collect();
    samples.order_by_key(|(at, _)| *at);
    let times: BTreeSet<i64> = samples.iter().map(|(at, _)| *at).collect();
    let skip = times.len().saturating_sub(MAX_FRAMES);
    let mut now = LatestValues { gaps, ..LatestValues::default() };
    if skip > 0 {
        now.gaps.push(format!("skipped the first {skip} of {} samples", times.len()));
    }
    let mut rest = samples.as_slice();
    let mut frames = Vec::new();
    for (i, at) in times.iter().enumerate() {
        let here = rest.partition_point(|(t, _)| t <= at);
        for (_, s) in rest.iter().take(here) {
            now.take(*at, s);
        }
        rest = rest.get(here..).unwrap_or_default();
        if i >= skip {
            frames.push(now.frame(*at));
        }
    }
    let death = died.map(|d| frames.partition_point(|f| f.ms <= d).saturating_sub(1));
    Recording { frames, death }
}

/// Names that this file knows; all others are of no use here.
fn is_shown(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "container_",
        "kube_pod_container_resource_limits",
        "DCGM_FI_DEV_",
        "node_memory_",
        "node_vmstat_oom_kill",
        "dualplane_",
    ];
    PARTS.iter().any(|p| name.starts_with(p)) || Gauge::of_engine(name).is_some()
}

/// One number of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gauge {
    Limit,
    WorkingSet,
    Usage,
    Peak,
    Anon,
    Shmem,
    Cache,
    Swap,
    OomKills,
    KvUse,
    Running,
    Waiting,
    Preemptions,
}

impl Gauge {
    fn of(s: &Sample) -> Option<Self> {
        Some(match s.name.as_str() {
            "container_spec_memory_limit_bytes" => Self::Limit,
            "kube_pod_container_resource_limits" if s.label("resource") == Some("memory") => Self::Limit,
            "container_memory_working_set_bytes" => Self::WorkingSet,
            "container_memory_usage_bytes" => Self::Usage,
            "container_memory_max_usage_bytes" => Self::Peak,
            "container_memory_rss" => Self::Anon,
            "dualplane_container_memory_shmem_bytes"
            | "container_memory_shmem_bytes"
            | "container_memory_shmem" => Self::Shmem,
            "container_memory_cache" => Self::Cache,
            "container_memory_swap" => Self::Swap,
            "container_oom_events_total" => Self::OomKills,
            name => return Self::of_engine(name),
        })
    }

    /// As the engines name them; the agent writes what it asked under the same names, and under its own where an engine has
    /// none.
    fn of_engine(name: &str) -> Option<Self> {
        let told = || Engines::embedded().iter().filter_map(|d| d.metrics.as_ref());
        Some(match name {
            "dualplane_engine_kv_cache_usage_ratio" => Self::KvUse,
            "dualplane_engine_requests_running" => Self::Running,
            "dualplane_engine_requests_waiting" => Self::Waiting,
            "dualplane_engine_preemptions_total" => Self::Preemptions,
            _ if told().any(|m| m.kv_use_names().any(|n| n == name)) => Self::KvUse,
            _ if told().any(|m| m.running_names().any(|n| n == name)) => Self::Running,
            _ if told().any(|m| m.waiting_names().any(|n| n == name)) => Self::Waiting,
            _ if told().any(|m| m.preemption_names().any(|n| n == name)) => Self::Preemptions,
            _ => return None,
        })
    }
}

type Value = (i64, f64);

/// A container by namespace, pod, container.
type Who = (String, String, String);

/// The newest value of everything.
#[derive(Debug, Default)]
struct LatestValues {
    containers: BTreeMap<Who, BTreeMap<Gauge, Value>>,
    restarts: BTreeMap<Who, u64>,
    last_class: BTreeMap<Who, String>,
    /// Engines' series tell the pod, seldom the container.
    engines: BTreeMap<(String, String), EngineValues>,
    /// By index, UUID and MIG instance.
    gpus: BTreeMap<(String, String, String), GpuValues>,
    node: BTreeMap<String, Value>,
    name: String,
    gaps: Vec<String>,
}

/// What an engine told.
#[derive(Debug, Default)]
struct EngineValues {
    engine: String,
    model: Option<String>,
    values: BTreeMap<Gauge, Value>,
}

#[derive(Debug, Default)]
struct GpuValues {
    name: String,
    /// Pod that holds it, where the exporter tells.
    pod: Option<(String, String)>,
    values: BTreeMap<String, Value>,
    /// Memory by container and pid, as the agent records it.
    held: BTreeMap<(String, String, String, u32), Value>,
}

impl LatestValues {
    fn take(&mut self, at: i64, s: &Sample) {
        let about = |key: &str| s.about(key).unwrap_or_default().to_owned();
        let value = (at, s.value);
        if s.name.starts_with("node_") {
            if let Some(name) = s.label("node").or_else(|| s.label("instance")) {
                name.clone_into(&mut self.name);
            }
            self.node.insert(s.name.clone(), value);
        } else if s.name.starts_with("DCGM_FI_DEV_") || s.name.starts_with("dualplane_gpu_") {
            let key = |names: [&str; 2]| names.iter().find_map(|n| s.label(n)).unwrap_or_default().to_owned();
            let card = self
                .gpus
                .entry((key(["gpu", "index"]), key(["UUID", "uuid"]), about("GPU_I_ID")))
                .or_default();
            if let Some(name) = s.label("modelName") {
                name.clone_into(&mut card.name);
            }
            if let Some(pid) = s.label("pid").and_then(|p| p.parse().ok()) {
                card.held.insert((about("namespace"), about("pod"), about("container"), pid), value);
                return;
            }
            if let Some(pod) = s.about("pod") {
                card.pod = Some((about("namespace"), pod.to_owned()));
            }
            card.values.insert(s.name.clone(), value);
        } else if s.name == "dualplane_container_restarts" && s.value >= 0.0 {
            self.restarts.insert((about("namespace"), about("pod"), about("container")), s.value as u64);
        } else if s.name == "dualplane_container_last_incident" {
            let who = (about("namespace"), about("pod"), about("container"));
            self.last_class.extend(s.label("class").map(|class| (who, class.to_owned())));
        } else if let Some(gauge) = Gauge::of(s) {
            let pod = about("pod");
            if Gauge::of_engine(&s.name).is_some() {
                let engine = self.engines.entry((about("namespace"), pod)).or_default();
                match s.label("engine").filter(|_| s.name.starts_with("dualplane_")) {
                    Some(name) => name.clone_into(&mut engine.engine),
                    None => {
                        s.name.split([':', '_']).next().unwrap_or_default().clone_into(&mut engine.engine)
                    }
                }
                engine.model = s.label("model_name").map(str::to_owned).or(engine.model.take());
                engine.values.insert(gauge, value);
                return;
            }
            let container = about("container");
            // "POD" is the pod's sandbox. A row without a container is the sum of its pod, and without a pod of more than that.
            // cAdvisor counts no kill for a pod.
            let sum = container.is_empty();
            if container != "POD" && !(sum && (pod.is_empty() || gauge == Gauge::OomKills)) {
                self.containers.entry((about("namespace"), pod, container)).or_default().insert(gauge, value);
            }
        }
    }

    /// The sum of a pod whose containers are told. A kubelet that cAdvisor gives no names of containers tells only sums.
    fn is_summed(&self, who: &Who) -> bool {
        let (namespace, pod, container) = who;
        container.is_empty()
            && self.containers.keys().any(|(n, p, c)| n == namespace && p == pod && !c.is_empty())
    }

    fn frame(&self, at: i64) -> Frame {
        let fresh = |v: Option<&Value>| v.filter(|(t, _)| at - t <= STALE_MS).map(|(_, v)| *v);
        let bytes = |v: Option<&Value>| fresh(v).filter(|v| *v >= 0.0).map(|v| v as u64);
        let n = |name: &str| bytes(self.node.get(name));
        let swap_total = n("node_memory_SwapTotal_bytes");
        let node = Node {
            name: self.name.clone(),
            total: n("node_memory_MemTotal_bytes"),
            available: n("node_memory_MemAvailable_bytes"),
            shmem: n("node_memory_Shmem_bytes"),
            swap_total,
            swap_used: swap_total.zip(n("node_memory_SwapFree_bytes")).map(|(t, f)| t.saturating_sub(f)),
            pressure: None,
            oom_kills: n("node_vmstat_oom_kill"),
        };
        let gpus: Vec<Gpu> = self
            .gpus
            .iter()
            .map(|((gpu, uuid, instance), card)| {
                let mib = |name: &str| {
                    let v = card.values.get(&format!("DCGM_FI_DEV_{name}"));
                    fresh(v).filter(|v| *v >= 0.0).map(|v| (v * MIB) as u64)
                };
                let number = |name: &str| {
                    bytes(card.values.get(&format!("DCGM_FI_DEV_{name}"))).and_then(|v| v.try_into().ok())
                };
                let used = mib("FB_USED");
                let sum = || Some(used? + mib("FB_FREE")? + mib("FB_RESERVED").unwrap_or(0));
                let holders = card.held.iter().filter_map(|((ns, pod, c, pid), v)| {
                    let name =
                        [ns, pod, c].into_iter().filter(|p| !p.is_empty()).cloned().collect::<Vec<_>>();
                    let used = fresh(Some(v)).map(|v| v as u64)?;
                    Some(Holder {
                        pid: *pid,
                        container: Some(name.join("/")).filter(|n| !n.is_empty()),
                        used: Some(used),
                    })
                });
                let holders: Vec<Holder> = holders.collect();
                let told: u64 = holders.iter().filter_map(|h| h.used).sum();
                Gpu {
                    index: if instance.is_empty() { gpu.clone() } else { format!("{gpu}.{instance}") },
                    uuid: uuid.clone(),
                    name: card.name.clone(),
                    total: mib("FB_TOTAL").or_else(sum),
                    used,
                    other: used.filter(|_| !holders.is_empty()).map(|u| u.saturating_sub(told)),
                    busy: number("GPU_UTIL"),
                    celsius: number("GPU_TEMP"),
                    throttled: None,
                    holders,
                }
            })
            .collect();
        let containers = (self.containers.iter().filter(|(who, _)| !self.is_summed(who)))
            .map(|(who, values)| self.container(who, values, &gpus, &bytes, &fresh));
        let containers: Vec<Container> =
            containers.filter(|c| c.working_set.is_some() || c.usage.is_some()).collect();
        Frame {
            schema: SCHEMA,
            at: Stamp::Wall { ms: at, zoned: true, year: true }.show(),
            ms: at,
            node,
            gpus,
            containers,
            incidents: Vec::new(),
            gaps: self.gaps.clone(),
        }
    }

    fn container(
        &self,
        who: &Who,
        values: &BTreeMap<Gauge, Value>,
        gpus: &[Gpu],
        bytes: &dyn Fn(Option<&Value>) -> Option<u64>,
        fresh: &dyn Fn(Option<&Value>) -> Option<f64>,
    ) -> Container {
        let (namespace, pod, container) = who;
        let parts = [namespace, pod, container].into_iter().filter(|p| !p.is_empty());
        let name = parts.cloned().collect::<Vec<_>>().join("/");
        let n = |g: Gauge| bytes(values.get(&g));
        let mut vram = Vec::new();
        for (gpu, card) in gpus.iter().zip(self.gpus.values()) {
            let held: Vec<u64> = gpu
                .holders
                .iter()
                .filter(|h| h.container.as_deref() == Some(name.as_str()))
                .filter_map(|h| h.used)
                .collect();
            // An exporter names the pod that was given the card, not its processes; then all of it is the pod's.
            let whole =
                card.pod.as_ref().is_some_and(|(ns, p)| p == pod && (ns.is_empty() || ns == namespace));
            if !held.is_empty() {
                vram.push(Vram { gpu: gpu.index.clone(), used: Some(held.iter().sum()), total: gpu.total });
            } else if whole && gpu.holders.is_empty() {
                vram.push(Vram { gpu: gpu.index.clone(), used: gpu.used, total: gpu.total });
            }
        }
        let engine = self.engines.get(&(namespace.clone(), pod.clone())).map(|told| {
            let e = |g: Gauge| fresh(told.values.get(&g));
            Engine {
                name: told.engine.clone(),
                model: told.model.clone(),
                kv_use: e(Gauge::KvUse),
                running: e(Gauge::Running),
                waiting: e(Gauge::Waiting),
                preemptions: e(Gauge::Preemptions),
                age_s: None,
            }
        });
        let (shmem, cache) = (n(Gauge::Shmem), n(Gauge::Cache));
        Container {
            id: name.clone(),
            name,
            namespace: Some(namespace.clone()).filter(|n| !n.is_empty()),
            limit: n(Gauge::Limit).filter(|l| *l > 0),
            working_set: n(Gauge::WorkingSet),
            usage: n(Gauge::Usage),
            peak: n(Gauge::Peak),
            anon: n(Gauge::Anon),
            shmem,
            file: cache.map(|c| c.saturating_sub(shmem.unwrap_or(0))),
            swap: n(Gauge::Swap),
            pressure: None,
            oom_kills: n(Gauge::OomKills),
            restarts: self.restarts.get(who).copied(),
            last_class: self.last_class.get(who).cloned(),
            vram,
            engine,
            processes: Vec::new(),
        }
    }
}
