//! Both planes of each container, and what its engine says.

use std::collections::BTreeMap;
use std::time::Duration;

use dualplane_base::order::Order as _;
use dualplane_base::units::Bytes;
use dualplane_node::cgroup::Limit;

use super::family::{Family, Labels, Metric, Page, counter, gauge};
use crate::figures::{bytes, number, seconds};
use crate::view::{ContainerView, View};

/// Containers of a page, the largest first: four times what a node runs by default.
const MAX_CONTAINERS: usize = 1024;
/// Devices of a container: 16 cards with 7 MIG devices each.
const MAX_DEVICES: usize = 128;
/// What an engine said longer ago is of another time.
const STALE: Duration = Duration::from_secs(120);

const OWN: &str = "namespace pod container";
const ENGINE: &str = "namespace pod container engine model_name";

const INFO: Family = gauge(
    "dualplane_container_info",
    "namespace pod container uid container_id qos runtime",
    "Always 1; the labels identify the container.",
);

const HOST: &[Metric<ContainerView>] = &[
    (
        gauge(
            "dualplane_container_restarts",
            OWN,
            "Restarts of the container in its pod, as the kubelet counts them.",
        ),
        |c| c.named.as_ref()?.restart.map(f64::from),
    ),
    (gauge("dualplane_container_memory_usage_bytes", OWN, "Host RAM in use, including page cache."), |c| {
        bytes(c.memory.current)
    }),
    (
        gauge(
            "dualplane_container_memory_peak_bytes",
            OWN,
            "Peak host RAM usage (cgroup v1, or v2 on Linux 5.19 and later).",
        ),
        |c| bytes(c.memory.peak),
    ),
    (
        gauge(
            "dualplane_container_memory_limit_bytes",
            OWN,
            "Lowest memory limit of the container and its parent cgroups; absent without a limit.",
        ),
        |c| bytes(c.memory.limit.and_then(Limit::bytes)),
    ),
    (
        gauge(
            "dualplane_container_memory_working_set_bytes",
            OWN,
            "Usage minus inactive page cache; the kubelet evicts by this value.",
        ),
        |c| bytes(c.memory.working_set()),
    ),
    (gauge("dualplane_container_memory_anon_bytes", OWN, "Anonymous memory."), |c| bytes(c.memory.anon)),
    (gauge("dualplane_container_memory_file_bytes", OWN, "Page cache, including tmpfs."), |c| {
        bytes(c.memory.file)
    }),
    (
        gauge(
            "dualplane_container_memory_shmem_bytes",
            OWN,
            "tmpfs, shared memory and pinned host memory; not reclaimable without swap.",
        ),
        |c| bytes(c.memory.shmem),
    ),
    (gauge("dualplane_container_memory_kernel_bytes", OWN, "Kernel memory (cgroup v2)."), |c| {
        bytes(c.memory.kernel)
    }),
    (
        gauge(
            "dualplane_container_memory_inactive_file_bytes",
            OWN,
            "Inactive page cache, which the \
        kernel reclaims first.",
        ),
        |c| bytes(c.memory.inactive_file),
    ),
    (gauge("dualplane_container_memory_unevictable_bytes", OWN, "Locked memory."), |c| {
        bytes(c.memory.unevictable)
    }),
    (gauge("dualplane_container_memory_swap_bytes", OWN, "Swap in use."), |c| bytes(c.memory.swap)),
    (
        counter("dualplane_container_memory_major_faults_total", OWN, "Page faults that required disk I/O."),
        |c| number(c.memory.major_faults),
    ),
    (
        counter(
            "dualplane_container_memory_at_limit_total",
            OWN,
            "Times the limit was reached; reclaim may have freed memory.",
        ),
        |c| number(c.memory.at_limit),
    ),
    (
        counter(
            "dualplane_container_memory_oom_total",
            OWN,
            "Allocations that failed at the limit (cgroup v2).",
        ),
        |c| number(c.memory.oom),
    ),
    (counter("dualplane_container_oom_kills_total", OWN, "Processes killed by the OOM killer."), |c| {
        number(c.memory.oom_kill)
    }),
    (
        counter(
            "dualplane_container_oom_group_kills_total",
            OWN,
            "Times the OOM killer killed the whole container (cgroup v2).",
        ),
        |c| number(c.memory.oom_group_kill),
    ),
    (
        counter(
            "dualplane_container_memory_pressure_waiting_seconds_total",
            OWN,
            "Time in which at least one task waited for memory (PSI some).",
        ),
        |c| seconds(c.memory.pressure.some_us),
    ),
    (
        counter(
            "dualplane_container_memory_pressure_stalled_seconds_total",
            OWN,
            "Time in which all tasks waited for memory (PSI full).",
        ),
        |c| seconds(c.memory.pressure.full_us),
    ),
    (gauge("dualplane_container_shm_size_bytes", OWN, "Size of the pod's /dev/shm."), |c| {
        bytes(c.shm.map(|s| s.size))
    }),
    (
        gauge(
            "dualplane_container_shm_used_bytes",
            OWN,
            "Used part of \
    /dev/shm.",
        ),
        |c| bytes(c.shm.map(|s| s.used)),
    ),
    (gauge("dualplane_container_processes", OWN, "Number of processes at the last listing."), |c| {
        let n = c.processes.processes.len() + c.processes.left_out;
        (n > 0).then_some(n as f64)
    }),
];

const VRAM: Family = gauge(
    "dualplane_container_gpu_memory_used_bytes",
    "namespace pod container gpu UUID",
    "VRAM used by the container's processes on a device, if the driver reports it.",
);
const ON_GPU: Family = gauge(
    "dualplane_container_gpu_processes",
    "namespace pod container gpu UUID",
    "Processes of the container that use memory on a device.",
);

const GIVEN: Family = gauge(
    "dualplane_container_gpu_given",
    "namespace pod container gpu UUID resource device_id",
    "1 for each GPU that the kubelet allocated to the container, used or not; gpu and UUID if device_id \
    identifies them.",
);
const KUBELET: Family = gauge(
    "dualplane_pod_resources_readable",
    "",
    "1 if the kubelet reports its GPU allocations, else 0; absent if it is not queried.",
);

const ENGINES: &[Metric<ContainerView>] = &[
    (gauge("dualplane_engine_kv_cache_usage_ratio", ENGINE, "Used share of the KV cache, 0 to 1."), |c| {
        c.engine.as_ref()?.kv_use
    }),
    (gauge("dualplane_engine_requests_running", ENGINE, "Running requests."), |c| c.engine.as_ref()?.running),
    (gauge("dualplane_engine_requests_waiting", ENGINE, "Waiting requests."), |c| c.engine.as_ref()?.waiting),
    (counter("dualplane_engine_preemptions_total", ENGINE, "Requests preempted from the KV cache."), |c| {
        c.engine.as_ref()?.preemptions
    }),
    (
        counter(
            "dualplane_engine_first_tokens_total",
            ENGINE,
            "Requests that got their first token; divides the seconds to a mean.",
        ),
        |c| c.engine.as_ref()?.first_tokens,
    ),
    (
        counter(
            "dualplane_engine_time_to_first_token_seconds_total",
            ENGINE,
            "Time that requests waited for their first token, all together.",
        ),
        |c| c.engine.as_ref()?.first_token_seconds,
    ),
    (counter("dualplane_engine_prompt_tokens_total", ENGINE, "Tokens in prompts."), |c| {
        c.engine.as_ref()?.prompt_tokens
    }),
    (counter("dualplane_engine_generated_tokens_total", ENGINE, "Generated tokens."), |c| {
        c.engine.as_ref()?.generated_tokens
    }),
];

pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    [&INFO]
        .into_iter()
        .chain(HOST.iter().map(|f| &f.0))
        .chain([&VRAM, &ON_GPU, &GIVEN, &KUBELET])
        .chain(ENGINES.iter().map(|f| &f.0))
}

/// Containers with a name of their own. While a container restarts, two have the same names: the newer one is told.
fn told<'v>(view: &'v View, node: &Labels, page: &mut Page<'_>) -> Vec<(Labels, &'v ContainerView)> {
    let mut by_name: BTreeMap<(&str, &str, String), &ContainerView> = BTreeMap::new();
    for c in view.containers.values() {
        let key = match &c.named {
            Some(n) => (n.namespace.as_str(), n.pod.as_str(), n.container.clone()),
            // A sandbox, or so new that nobody has named it.
            None if c.group.identity.pod_uid.is_some() => continue,
            None => ("", "", c.title()),
        };
        let newest = by_name.entry(key).or_insert(c);
        if (c.since, c.slot) > (newest.since, newest.slot) {
            *newest = c;
        }
    }
    let mut all: Vec<_> = by_name.into_iter().collect();
    if let Some(more) = all.len().checked_sub(MAX_CONTAINERS).filter(|n| *n > 0) {
        all.order_by_key(|(_, c)| std::cmp::Reverse(c.memory.current));
        all.truncate(MAX_CONTAINERS);
        page.leave_out(more);
    }
    let labels = |(namespace, pod, container): &(&str, &str, String)| {
        node.with("namespace", namespace).with("pod", pod).with("container", container)
    };
    all.into_iter().map(|(key, c)| (labels(&key), c)).collect()
}

pub(super) fn render(view: &View, node: &Labels, page: &mut Page<'_>) {
    let all = told(view, node, page);
    page.family(
        &INFO,
        all.iter().map(|(l, c)| {
            let p = &c.group.identity;
            let uid = c.named.as_ref().and_then(|n| n.uid.as_deref()).or(p.pod_uid.as_deref());
            let l = l.with("uid", uid.unwrap_or_default());
            let l = l.with("container_id", p.container_id.as_deref().unwrap_or_default());
            (l.with("qos", p.qos.unwrap_or_default()).with("runtime", p.runtime.unwrap_or_default()), 1.0)
        }),
    );
    page.all(HOST, &all);
    let on: Vec<(Labels, Option<Bytes>, usize)> =
        all.iter().flat_map(|(l, c)| on_devices(view, l, c)).collect();
    page.family(&VRAM, on.iter().filter_map(|(l, used, _)| Some((l.clone(), bytes(*used)?))));
    page.family(&ON_GPU, on.iter().map(|(l, _, n)| (l.clone(), *n as f64)));
    page.family(&GIVEN, all.iter().flat_map(|(l, c)| given(view, l, c)).map(|l| (l, 1.0)));
    if let Some(told) = &view.kubelet {
        page.family(&KUBELET, [(node.clone(), f64::from(u8::from(told.is_ok())))].into_iter());
    }
    let fresh = |c: &ContainerView| c.engine.as_ref().filter(|e| view.at.since(e.at) < STALE).cloned();
    let engines: Vec<(Labels, &ContainerView)> = all
        .iter()
        .filter_map(|(l, c)| {
            let e = fresh(c)?;
            Some((l.with("engine", e.engine).with("model_name", e.model.as_deref().unwrap_or_default()), *c))
        })
        .collect();
    page.all(ENGINES, &engines);
}

/// Devices that a container is on: labels, VRAM, processes.
fn on_devices(view: &View, labels: &Labels, c: &ContainerView) -> Vec<(Labels, Option<Bytes>, usize)> {
    let mut by_device: BTreeMap<u16, (Option<Bytes>, usize)> = BTreeMap::new();
    for h in &c.vram {
        let (used, n) = by_device.entry(h.device).or_default();
        *n += 1;
        if let Some(b) = h.used {
            *used = Some(used.unwrap_or_default().saturating_add(b));
        }
    }
    let labelled = by_device.into_iter().take(MAX_DEVICES).filter_map(|(device, (used, n))| {
        let d = &view.gpus.get(usize::from(device))?.device;
        Some((labels.with("gpu", &d.index.to_string()).with("UUID", &d.uuid), used, n))
    });
    labelled.collect()
}

/// Labels of each device that a container was given. Several replicas of one card differ in their id alone.
fn given<'v>(
    view: &'v View,
    labels: &Labels,
    c: &'v ContainerView,
) -> impl Iterator<Item = Labels> + use<'v> {
    let labels = labels.clone();
    c.given.iter().take(MAX_DEVICES).map(move |g| {
        let device = view.device_of(g).map(|(_, d)| &d.device);
        let gpu = device.map(|d| d.index.to_string()).unwrap_or_default();
        // A device of a claim has no UUID in its id.
        let uuid = g.uuid.as_deref().or(device.map(|d| d.uuid.as_str()));
        let l = labels.with("gpu", &gpu).with("UUID", uuid.unwrap_or_default());
        l.with("resource", &g.resource).with("device_id", &g.id)
    })
}
