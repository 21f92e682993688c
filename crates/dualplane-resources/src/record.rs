//! Instances of containers: one for each start, with what was measured of it.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;

use dualplane_base::text::printable;

use crate::series::Series;

/// Whose memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
}

/// What is measured. Names are those of cAdvisor, kube-state-metrics, DCGM's exporter and our agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gauge {
    /// Usage without inactive page cache, bytes.
    WorkingSet,
    /// Anonymous memory, bytes.
    Anon,
    /// Page cache with tmpfs, bytes.
    Cache,
    /// Inactive page cache without tmpfs, bytes.
    InactiveFile,
    /// Active page cache without tmpfs, bytes.
    ActiveFile,
    /// tmpfs, shared and pinned memory, bytes.
    Shmem,
    /// The kernel's own peak of the usage, with page cache, bytes.
    Peak,
    /// The limit, bytes.
    Limit,
    /// The request, bytes.
    Request,
    /// Processor time since the start, seconds.
    Cpu,
    /// The request of processors, cores.
    CpuRequest,
    /// 1 while requests may come.
    Ready,
    /// Kills by the kernel.
    OomKills,
    /// 1 where the end before this start was such a kill. The counter of a cgroup often goes with it before it is scraped.
    OomEnded,
    /// Starts before this one.
    Restarts,
    /// Used part of `/dev/shm`, bytes.
    DevShm,
    /// Locked memory, bytes.
    Locked,
    /// VRAM, bytes.
    Vram,
}

impl Gauge {
    fn of(s: &Series) -> Option<(Self, f64)> {
        let resource = s.label("resource").unwrap_or_default();
        let is = |name: &str, value: &str| s.label(name) == Some(value);
        let gauge = match s.name.as_str() {
            "container_memory_working_set_bytes" | "dualplane_container_memory_working_set_bytes" => {
                Self::WorkingSet
            }
            "container_memory_rss" | "dualplane_container_memory_anon_bytes" => Self::Anon,
            "container_memory_cache" | "dualplane_container_memory_file_bytes" => Self::Cache,
            "container_memory_total_inactive_file_bytes"
            | "dualplane_container_memory_inactive_file_bytes" => Self::InactiveFile,
            "container_memory_total_active_file_bytes" => Self::ActiveFile,
            "dualplane_container_memory_shmem_bytes" => Self::Shmem,
            "container_memory_max_usage_bytes" | "dualplane_container_memory_peak_bytes" => Self::Peak,
            "container_spec_memory_limit_bytes" | "dualplane_container_memory_limit_bytes" => Self::Limit,
            "kube_pod_container_resource_limits" if resource == "memory" => Self::Limit,
            "kube_pod_container_resource_requests" if resource == "memory" => Self::Request,
            "kube_pod_container_resource_requests" if resource == "cpu" => Self::CpuRequest,
            "container_cpu_usage_seconds_total" => Self::Cpu,
            "kube_pod_container_status_ready" => Self::Ready,
            "container_oom_events_total" | "dualplane_container_oom_kills_total" => Self::OomKills,
            "kube_pod_container_status_restarts_total" | "dualplane_container_restarts" => Self::Restarts,
            "kube_pod_container_status_last_terminated_reason" if is("reason", "OOMKilled") => Self::OomEnded,
            "dualplane_container_last_incident" if is("class", "host_oom_killed") => Self::OomEnded,
            "dualplane_container_memory_unevictable_bytes" => Self::Locked,
            "dualplane_container_shm_used_bytes" => Self::DevShm,
            "dualplane_container_gpu_memory_used_bytes" => Self::Vram,
            // DCGM counts MiB.
            "DCGM_FI_DEV_FB_USED" => return Some((Self::Vram, 1_048_576.0)),
            _ => return None,
        };
        Some((gauge, 1.0))
    }
}

/// One start of a container, from its first to its last sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Instance {
    /// Time of the first sample, milliseconds.
    pub from: i64,
    /// Time of the last.
    pub to: i64,
    /// Values by what they are, by time.
    pub values: BTreeMap<Gauge, Vec<(i64, f64)>>,
}

impl Instance {
    /// Values of one kind; none where nothing told them.
    #[must_use]
    pub fn of(&self, gauge: Gauge) -> &[(i64, f64)] {
        self.values.get(&gauge).map_or(&[], Vec::as_slice)
    }

    /// The largest of them.
    #[must_use]
    pub fn most(&self, gauge: Gauge) -> Option<f64> {
        self.of(gauge).iter().map(|(_, v)| *v).reduce(f64::max)
    }
}

/// A container with its instances, the oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// Whose.
    pub owner: Owner,
    /// Its starts.
    pub instances: Vec<Instance>,
    /// Median time between two samples of host RAM, milliseconds.
    pub step: i64,
}

/// Sorts series by container and start. Series that name no container, and the rows of pods and of the pause container, are
/// left out.
#[must_use]
pub fn containers(all: &[Series]) -> Vec<Container> {
    let mut by_owner: BTreeMap<Owner, Vec<(&Series, Gauge, f64)>> = BTreeMap::new();
    for s in all {
        let Some((gauge, unit)) = Gauge::of(s) else { continue };
        // Labels are whatever an exporter wrote.
        let label = |name: &str| s.label(name).map(|text| printable(text).into_owned());
        let (Some(namespace), Some(pod), Some(container)) =
            (label("namespace"), label("pod"), label("container"))
        else {
            continue;
        };
        if container != "POD" {
            by_owner.entry(Owner { namespace, pod, container }).or_default().push((s, gauge, unit));
        }
    }
    by_owner.into_iter().filter_map(|(owner, series)| container(owner, &series)).collect()
}

fn container(owner: Owner, all: &[(&Series, Gauge, f64)]) -> Option<Container> {
    let ram: Vec<&(&Series, Gauge, f64)> = all.iter().filter(|(_, g, _)| *g == Gauge::WorkingSet).collect();
    let step = median_step(ram.iter().flat_map(|(s, ..)| s.points.windows(2)).filter_map(gap))?;
    // cAdvisor names the cgroup: each start has one of its own.
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for (s, ..) in &ram {
        if s.labels.contains_key("id") {
            spans.extend(span(&s.points));
        } else {
            spans.extend(cut(&s.points, all, step));
        }
    }
    spans.order();
    // Two sources of the same container tell of the same start.
    let mut starts: Vec<(i64, i64)> = Vec::new();
    for (from, to) in spans {
        match starts.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => starts.push((from, to)),
        }
    }
    let instances = starts.iter().map(|(from, to)| instance(*from, *to, step, all)).collect();
    Some(Container { owner, instances, step })
}

fn gap(pair: &[(i64, f64)]) -> Option<i64> {
    let [(a, _), (b, _)] = pair else { return None };
    Some(b - a).filter(|d| *d > 0)
}

fn median_step(gaps: impl Iterator<Item = i64>) -> Option<i64> {
    let mut all: Vec<i64> = gaps.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

fn span(points: &[(i64, f64)]) -> Option<(i64, i64)> {
    Some((points.first()?.0, points.last()?.0))
}

/// Starts of a container whose series do not tell them apart: after a gap, and where the number of restarts grew.
fn cut(points: &[(i64, f64)], all: &[(&Series, Gauge, f64)], step: i64) -> Vec<(i64, i64)> {
    let mut grew: Vec<i64> = Vec::new();
    for (s, gauge, _) in all {
        if *gauge == Gauge::Restarts {
            let pairs = s.points.windows(2);
            grew.extend(pairs.filter_map(|p| match p {
                [(_, a), (at, b)] if b > a => Some(*at),
                _ => None,
            }));
        }
    }
    let mut out: Vec<(i64, i64)> = Vec::new();
    for (at, _) in points {
        let begins = |last: &(i64, i64)| {
            at - last.1 > step.saturating_mul(4).max(60_000) || grew.iter().any(|g| last.1 < *g && *g <= *at)
        };
        match out.last_mut() {
            Some(last) if !begins(last) => last.1 = *at,
            _ => out.push((*at, *at)),
        }
    }
    out
}

/// What was measured while it ran. A limit or a request of before counts on: kube-state-metrics may tell it first.
fn instance(from: i64, to: i64, step: i64, all: &[(&Series, Gauge, f64)]) -> Instance {
    let mut values: BTreeMap<Gauge, BTreeMap<i64, f64>> = BTreeMap::new();
    // Cards add up; what two exporters tell of one card does not.
    let mut cards: BTreeMap<i64, BTreeMap<String, f64>> = BTreeMap::new();
    let of_agent = |s: &Series| s.name.starts_with("dualplane_");
    let agent_tells_vram = all.iter().any(|(s, g, _)| *g == Gauge::Vram && of_agent(s));
    for (s, gauge, unit) in all {
        if *gauge == Gauge::Vram && agent_tells_vram && !of_agent(s) {
            continue;
        }
        // The rows of another start's cgroup.
        let other = s.labels.contains_key("id") && span(&s.points).is_none_or(|(a, b)| b < from || a > to);
        if other {
            continue;
        }
        for (at, value) in s.points.iter().filter(|(at, _)| *at >= from - step && *at <= to + step) {
            let value = value * unit;
            let now = if *gauge == Gauge::Vram {
                cards.entry(*at).or_default().entry(card(s)).or_insert(value)
            } else {
                values.entry(*gauge).or_default().entry(*at).or_insert(value)
            };
            *now = now.max(value);
        }
    }
    if !cards.is_empty() {
        values.insert(Gauge::Vram, cards.into_iter().map(|(at, of)| (at, of.values().sum())).collect());
    }
    let values = values.into_iter().map(|(g, by_time)| (g, by_time.into_iter().collect())).collect();
    Instance { from, to, values }
}

/// A card or a slice of one, by the names that exporters give it.
fn card(s: &Series) -> String {
    let of = |name: &str| s.labels.get(name).map_or("", String::as_str);
    format!("{} {} {}", of("UUID"), of("gpu"), of("GPU_I_ID"))
}

/// The metrics that are read, for queries.
pub const METRICS: &[&str] = &[
    "container_memory_working_set_bytes",
    "container_memory_rss",
    "container_memory_cache",
    "container_memory_total_inactive_file_bytes",
    "container_memory_total_active_file_bytes",
    "container_memory_max_usage_bytes",
    "container_spec_memory_limit_bytes",
    "container_oom_events_total",
    "container_cpu_usage_seconds_total",
    "kube_pod_container_resource_limits",
    "kube_pod_container_resource_requests",
    "kube_pod_container_status_ready",
    "kube_pod_container_status_restarts_total",
    "kube_pod_container_status_last_terminated_reason",
    "DCGM_FI_DEV_FB_USED",
    "dualplane_container_memory_working_set_bytes",
    "dualplane_container_memory_anon_bytes",
    "dualplane_container_memory_file_bytes",
    "dualplane_container_memory_inactive_file_bytes",
    "dualplane_container_memory_shmem_bytes",
    "dualplane_container_memory_peak_bytes",
    "dualplane_container_memory_limit_bytes",
    "dualplane_container_oom_kills_total",
    "dualplane_container_restarts",
    "dualplane_container_last_incident",
    "dualplane_container_memory_unevictable_bytes",
    "dualplane_container_shm_used_bytes",
    "dualplane_container_gpu_memory_used_bytes",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, labels: &[(&str, &str)], points: &[(i64, f64)]) -> Series {
        let own = [("namespace", "serving"), ("pod", "llm-0"), ("container", "vllm")];
        let labels = own.iter().chain(labels).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let points = points.iter().map(|(s, v)| (s * 1000, *v)).collect();
        Series { name: name.into(), labels, points }
    }

    #[test]
    fn each_cgroup_is_a_start_and_rows_of_others_do_not_leak_into_it() {
        let all = [
            series("container_memory_working_set_bytes", &[("id", "/a")], &[(0, 1.0), (30, 9.0)]),
            series("container_memory_working_set_bytes", &[("id", "/b")], &[(60, 2.0), (90, 3.0)]),
            series("container_memory_max_usage_bytes", &[("id", "/a")], &[(0, 1.0), (30, 10.0)]),
            series("container_memory_max_usage_bytes", &[("id", "/b")], &[(60, 2.0), (90, 4.0)]),
            series("DCGM_FI_DEV_FB_USED", &[("gpu", "0")], &[(60, 1.0), (90, 2.0)]),
            series("DCGM_FI_DEV_FB_USED", &[("gpu", "1")], &[(60, 1.0), (90, 2.0)]),
        ];
        let found = containers(&all);
        let peaks: Vec<_> = found[0].instances.iter().map(|i| i.most(Gauge::Peak)).collect();
        assert_eq!((found.len(), peaks), (1, vec![Some(10.0), Some(4.0)]));
        assert_eq!(found[0].instances[1].most(Gauge::Vram), Some(4.0 * 1_048_576.0));
    }

    #[test]
    fn without_cgroups_a_restart_or_a_gap_begins_a_start() {
        let points = [(0, 1.0), (30, 2.0), (60, 1.0), (90, 2.0), (900, 1.0), (930, 1.0)];
        let all = [
            series("dualplane_container_memory_working_set_bytes", &[], &points),
            series("dualplane_container_restarts", &[], &[(0, 0.0), (30, 0.0), (60, 1.0)]),
        ];
        let spans: Vec<_> =
            containers(&all)[0].instances.iter().map(|i| (i.from / 1000, i.to / 1000)).collect();
        assert_eq!(spans, [(0, 30), (60, 90), (900, 930)]);
    }

    #[test]
    fn each_metric_of_the_list_is_read() {
        for name in METRICS {
            let of = |resource: &str| {
                let labels = [("resource", resource), ("reason", "OOMKilled"), ("class", "host_oom_killed")];
                Gauge::of(&series(name, &labels, &[]))
            };
            assert!(of("memory").is_some(), "{name}");
        }
    }
}
