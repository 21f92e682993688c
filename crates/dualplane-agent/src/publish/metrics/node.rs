//! The machine as a whole.

use dualplane_node::node::Machine;

use super::family::{Family, Labels, Metric, Page, counter, gauge};
use crate::figures::{bytes, seconds};
use crate::view::View;

const NODE: &[Metric<Machine>] = &[
    (gauge("dualplane_node_memory_size_bytes", "", "Host RAM of the node."), |m| bytes(m.total)),
    (
        gauge(
            "dualplane_node_memory_available_bytes",
            "",
            "Memory available to a new process without \
        swapping.",
        ),
        |m| bytes(m.available),
    ),
    (gauge("dualplane_node_memory_free_bytes", "", "Unused."), |m| bytes(m.free)),
    (gauge("dualplane_node_memory_cached_bytes", "", "Page cache, including tmpfs."), |m| bytes(m.cached)),
    (gauge("dualplane_node_memory_shmem_bytes", "", "tmpfs, shared memory and pinned host memory."), |m| {
        bytes(m.shmem)
    }),
    (gauge("dualplane_node_memory_anon_bytes", "", "Anonymous memory."), |m| bytes(m.anon)),
    (
        gauge("dualplane_node_memory_slab_unreclaimable_bytes", "", "Kernel slabs that cannot be reclaimed."),
        |m| bytes(m.slab),
    ),
    (gauge("dualplane_node_memory_unevictable_bytes", "", "Locked memory."), |m| bytes(m.unevictable)),
    (
        gauge(
            "dualplane_node_memory_hugetlb_bytes",
            "",
            "Memory reserved for huge pages; not available for anything else.",
        ),
        |m| bytes(m.hugetlb),
    ),
    (gauge("dualplane_node_swap_size_bytes", "", "Swap space."), |m| bytes(m.swap_total)),
    (gauge("dualplane_node_swap_free_bytes", "", "Unused swap space."), |m| bytes(m.swap_free)),
    (
        counter(
            "dualplane_node_oom_kills_total",
            "",
            "Processes killed by the OOM killer on the node since boot.",
        ),
        |m| m.oom_kill.map(|n| n as f64),
    ),
    (
        counter(
            "dualplane_node_memory_pressure_waiting_seconds_total",
            "",
            "Time in which at least one task waited for memory (PSI some).",
        ),
        |m| seconds(m.pressure.some_us),
    ),
    (
        counter(
            "dualplane_node_memory_pressure_stalled_seconds_total",
            "",
            "Time in which all tasks waited for memory (PSI full).",
        ),
        |m| seconds(m.pressure.full_us),
    ),
];

pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    NODE.iter().map(|f| &f.0)
}

pub(super) fn render(view: &View, node: &Labels, page: &mut Page<'_>) {
    page.all(NODE, &[(node.clone(), &view.machine)]);
}
