//! What the agent found, and what it costs.

use super::family::{Family, Labels, Metric, Page, counter, gauge};
use crate::publish::{Counts, SinkCounts};
use crate::view::View;

const INCIDENTS: Family = counter(
    "dualplane_incidents_total",
    "class plane kind",
    "Incidents since the agent started, by verdict; counted once they are judged, or once it is clear that they will not be.",
);

const LAST: Family = gauge(
    "dualplane_container_last_incident",
    "namespace pod container class plane kind",
    "Always 1; the labels tell the last verdict of each container, also of one that is gone.",
);

const LAST_AT: Family = gauge(
    "dualplane_container_last_incident_timestamp_seconds",
    "namespace pod container",
    "When each container's last incident was: it tells two of one verdict apart.",
);

/// A family and how its value is read.
type AgentMetric = (Family, fn(&View, &Counts) -> Option<f64>);

const AGENT: &[AgentMetric] = &[
    (gauge("dualplane_incidents_kept", "", "Bundles on the disk."), |_, c| Some(c.store.bundles as f64)),
    (gauge("dualplane_incidents_kept_bytes", "", "Their bytes."), |_, c| Some(c.store.bytes as f64)),
    (
        counter(
            "dualplane_incidents_dropped_total",
            "",
            "Bundles deleted to make room for later \
    ones.",
        ),
        |_, c| Some(c.store.dropped as f64),
    ),
    (
        counter(
            "dualplane_incidents_dropped_first_total",
            "",
            "Deleted bundles that held the first death of \
    a crash loop.",
        ),
        |_, c| Some(c.store.dropped_firsts as f64),
    ),
    (gauge("dualplane_incidents_unreadable", "", "Incident summaries that cannot be read."), |_, c| {
        Some(c.store.unreadable as f64)
    }),
    (counter("dualplane_agent_rounds_total", "", "Sampling rounds."), |v, _| {
        Some((v.round?.number as f64) + 1.0)
    }),
    (counter("dualplane_agent_round_seconds_total", "", "Total time spent in sampling rounds."), |_, c| {
        Some(c.round_time.as_secs_f64())
    }),
    (
        gauge("dualplane_agent_round_duration_seconds", "", "Time that the last round spent on host RAM."),
        |v, _| {
            let r = v.round?;
            Some((r.host.took() + r.node.took()).as_secs_f64())
        },
    ),
    (
        gauge(
            "dualplane_agent_plane_skew_seconds",
            "",
            "Largest time difference between the host RAM and VRAM readings of the last round.",
        ),
        |v, _| Some(v.round?.skew()?.as_secs_f64()),
    ),
    (gauge("dualplane_agent_last_round_timestamp_seconds", "", "Start time of the last round."), |v, _| {
        v.round.map(|_| v.wall_ms as f64 / 1000.0)
    }),
    (
        counter(
            "dualplane_agent_gpu_late_total",
            "",
            "Rounds in which the GPU driver did not answer in time.",
        ),
        |_, c| Some(c.gpu_late as f64),
    ),
    (
        gauge("dualplane_agent_containers", "", "Sampled container cgroups, including pod sandboxes."),
        |v, _| Some(v.containers.len() as f64),
    ),
    (gauge("dualplane_agent_ring_bytes", "", "Size of the sample ring on disk."), |_, c| {
        c.ring_bytes.map(|b| b as f64)
    }),
    (gauge("dualplane_agent_ring_span_seconds", "", "Time span covered by the sample ring."), |_, c| {
        c.ring_span.map(|d| d.as_secs_f64())
    }),
    (
        counter(
            "dualplane_agent_kernel_records_lost_total",
            "",
            "Kernel messages overwritten before the agent could read them.",
        ),
        |_, c| Some(c.kernel_lost as f64),
    ),
];

const LOST: Family = counter("dualplane_agent_lost_total", "what", "Data that could not be kept, by kind.");

const READY: Family = gauge(
    "dualplane_agent_ready",
    "",
    "1 if all works that the agent needs, else 0 (/readyz says what does not).",
);
const FAULT: Family = gauge("dualplane_agent_fault", "what", "1 while a part of the agent does not work.");
const FAULTS: Family = counter(
    "dualplane_agent_faults_total",
    "what",
    "Faults since the agent started, by part; those that are over as well.",
);

const SINK: &[Metric<SinkCounts>] = &[
    (counter("dualplane_sink_delivered_total", "sink", "Incidents delivered."), |s| Some(s.delivered as f64)),
    (counter("dualplane_sink_failed_total", "sink", "Failed delivery attempts; they are retried."), |s| {
        Some(s.failed as f64)
    }),
    (
        counter("dualplane_sink_refused_total", "sink", "Incidents permanently rejected by the receiver."),
        |s| Some(s.refused as f64),
    ),
    (
        counter("dualplane_sink_lost_total", "sink", "Incidents whose bundle was deleted before delivery."),
        |s| Some(s.lost as f64),
    ),
    (gauge("dualplane_sink_pending", "sink", "Incidents waiting for delivery."), |s| Some(s.pending as f64)),
];

const INFO: Family = gauge("dualplane_agent_info", "version", "Always 1; the label holds the version.");

/// These have the names that all exporters use; `node` is on them too.
const PROCESS: &[AgentMetric] = &[
    (counter("process_cpu_seconds_total", "", "CPU time."), |_, c| c.cost.cpu.map(|d| d.as_secs_f64())),
    (gauge("process_resident_memory_bytes", "", "Resident memory."), |_, c| {
        c.cost.resident.map(|b| b.0 as f64)
    }),
    (gauge("process_open_fds", "", "Open file descriptors."), |_, c| c.cost.open_fds.map(|n| n as f64)),
    (
        gauge(
            "process_max_fds",
            "",
            "Maximum number of open file \
    descriptors.",
        ),
        |_, c| c.cost.max_fds.map(|n| n as f64),
    ),
    (gauge("process_start_time_seconds", "", "Start time of the agent."), |_, c| {
        c.cost.started_ms.map(|ms| ms as f64 / 1000.0)
    }),
];

const LEFT_OUT: Family =
    gauge("dualplane_agent_samples_left_out", "", "Containers, devices and samples omitted from this page.");

pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    [&INCIDENTS, &LAST, &LAST_AT]
        .into_iter()
        .chain(AGENT.iter().map(|f| &f.0))
        .chain([&LOST, &READY, &FAULT, &FAULTS])
        .chain(SINK.iter().map(|f| &f.0))
        .chain([&INFO])
        .chain(PROCESS.iter().map(|f| &f.0))
        .chain([&LEFT_OUT])
}

pub(super) fn render(view: &View, counts: &Counts, node: &Labels, page: &mut Page<'_>) {
    page.lift();
    page.family(
        &INCIDENTS,
        counts.verdicts.incidents.iter().map(|((class, plane, kind), n)| {
            (node.with("class", class).with("plane", plane).with("kind", kind), *n as f64)
        }),
    );
    let last = || {
        counts.verdicts.last.iter().map(|((namespace, pod, container), last)| {
            (node.with("namespace", namespace).with("pod", pod).with("container", container), last)
        })
    };
    page.family(
        &LAST,
        last().map(|(l, last)| {
            let (class, plane, kind) = &last.verdict;
            (l.with("class", class).with("plane", plane).with("kind", kind), 1.0)
        }),
    );
    page.family(&LAST_AT, last().filter_map(|(l, last)| Some((l, last.died_ms? as f64 / 1000.0))));
    both(AGENT, view, counts, node, page);
    page.family(&LOST, counts.lost.iter().map(|(what, n)| (node.with("what", what), *n as f64)));
    let ready = !counts.faults.iter().any(|f| f.part.is_needed());
    page.family(&READY, [(node.clone(), f64::from(u8::from(ready)))].into_iter());
    let faults = counts.faults.iter().map(|f| (node.with("what", &f.part.to_string()), 1.0));
    page.family(&FAULT, faults);
    let begun = counts.faults_begun.iter().map(|(p, n)| (node.with("what", &p.to_string()), *n as f64));
    page.family(&FAULTS, begun);
    let sinks: Vec<_> = counts.sinks.iter().map(|s| (node.with("sink", &s.name), s)).collect();
    page.all(SINK, &sinks);
    page.family(&INFO, [(node.with("version", env!("CARGO_PKG_VERSION")), 1.0)].into_iter());
    both(PROCESS, view, counts, node, page);
    let left_out = page.left_out();
    page.family(&LEFT_OUT, [(node.clone(), left_out as f64)].into_iter());
}

fn both(table: &[AgentMetric], view: &View, counts: &Counts, node: &Labels, page: &mut Page<'_>) {
    for (family, value) in table {
        page.family(family, value(view, counts).map(|v| (node.clone(), v)).into_iter());
    }
}
