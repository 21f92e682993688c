//! Which value is told under which name, and in which unit.

use dualplane_base::units::{Bytes, MIB};
use dualplane_node::cgroup::{Limit, Memory};
use dualplane_node::gpu::{Health, Reading};
use dualplane_node::node::{Machine, Shm};

use crate::figures::{bytes as b, number as n, seconds};

/// Milliseconds between values that move each second and decide nothing.
const SELDOM: i64 = 5000;

/// One name.
pub(super) struct Metric<T> {
    pub(super) name: &'static str,
    /// `None` where the machine does not tell.
    pub(super) get: fn(&T) -> Option<f64>,
    /// Milliseconds between two values, at least.
    pub(super) every: i64,
}

const fn metric<T>(name: &'static str, get: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, get, every: 0 }
}

const fn seldom<T>(name: &'static str, get: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, get, every: SELDOM }
}

fn mib(v: Option<Bytes>) -> Option<f64> {
    v.map(|b| b.0 as f64 / MIB as f64)
}

/// Names of cAdvisor, then our own.
pub(super) const CONTAINER: &[Metric<Memory>] = &[
    metric("container_memory_usage_bytes", |m| b(m.current)),
    // Only where usage and page cache were read at the same time.
    metric("container_memory_working_set_bytes", |m| b(m.working_set())),
    metric("container_memory_rss", |m| b(m.anon)),
    metric("container_memory_cache", |m| b(m.file)),
    metric("container_memory_swap", |m| b(m.swap)),
    metric("container_memory_max_usage_bytes", |m| b(m.peak)),
    metric("container_spec_memory_limit_bytes", |m| b(m.limit.and_then(Limit::bytes))),
    metric("container_oom_events_total", |m| n(m.oom_kill)),
    metric("container_memory_failcnt", |m| n(m.at_limit)),
    metric("container_memory_kernel_usage", |m| b(m.kernel)),
    metric("container_memory_total_inactive_file_bytes", |m| b(m.inactive_file)),
    metric("container_memory_total_active_file_bytes", |m| b(m.active_file)),
    metric("container_pressure_memory_waiting_seconds_total", |m| seconds(m.pressure.some_us)),
    metric("container_pressure_memory_stalled_seconds_total", |m| seconds(m.pressure.full_us)),
    metric("dualplane_container_memory_pressure_stalled_ratio", |m| {
        m.pressure.full_avg10.map(|h| h as f64 / 1e4)
    }),
    metric("dualplane_container_memory_shmem_bytes", |m| b(m.shmem)),
    metric("dualplane_container_memory_unevictable_bytes", |m| b(m.unevictable)),
    metric("dualplane_container_memory_major_faults_total", |m| n(m.major_faults)),
    metric("dualplane_container_memory_oom_total", |m| n(m.oom)),
    metric("dualplane_container_oom_group_kills_total", |m| n(m.oom_group_kill)),
];

pub(super) const SHM: &[Metric<Shm>] = &[
    metric("dualplane_container_shm_size_bytes", |s| Some(s.size.0 as f64)),
    metric("dualplane_container_shm_used_bytes", |s| Some(s.used.0 as f64)),
];

/// Restarts of the container in its pod, as the agent's own metrics call them.
pub(super) const RESTARTS: &str = "dualplane_container_restarts";

/// How the container's instance before this one died, by its labels, as the agent's own metrics call it.
pub(super) const LAST_INCIDENT: &str = "dualplane_container_last_incident";

/// Names of the node exporter.
pub(super) const NODE: &[Metric<Machine>] = &[
    metric("node_memory_MemTotal_bytes", |m| b(m.total)),
    metric("node_memory_MemAvailable_bytes", |m| b(m.available)),
    seldom("node_memory_MemFree_bytes", |m| b(m.free)),
    seldom("node_memory_Cached_bytes", |m| b(m.cached)),
    seldom("node_memory_Shmem_bytes", |m| b(m.shmem)),
    seldom("node_memory_AnonPages_bytes", |m| b(m.anon)),
    seldom("node_memory_SUnreclaim_bytes", |m| b(m.slab)),
    seldom("node_memory_Unevictable_bytes", |m| b(m.unevictable)),
    seldom("node_memory_Hugetlb_bytes", |m| b(m.hugetlb)),
    metric("node_memory_SwapTotal_bytes", |m| b(m.swap_total)),
    seldom("node_memory_SwapFree_bytes", |m| b(m.swap_free)),
    metric("node_vmstat_oom_kill", |m| n(m.oom_kill)),
    seldom("node_pressure_memory_waiting_seconds_total", |m| seconds(m.pressure.some_us)),
    seldom("node_pressure_memory_stalled_seconds_total", |m| seconds(m.pressure.full_us)),
];

/// Names of the DCGM exporter: VRAM in MiB.
pub(super) const VRAM: &[Metric<Reading>] = &[
    metric("DCGM_FI_DEV_FB_USED", |r| mib(r.used)),
    metric("DCGM_FI_DEV_FB_FREE", |r| mib(r.free)),
    metric("DCGM_FI_DEV_FB_RESERVED", |r| mib(r.reserved)),
    metric("DCGM_FI_DEV_FB_TOTAL", |r| mib(r.total)),
];

/// Names of the DCGM exporter: percent, percent, watts, degrees Celsius, MHz, MHz, bits.
pub(super) const DEVICE: &[Metric<Reading>] = &[
    seldom("DCGM_FI_DEV_GPU_UTIL", |r| r.busy.map(f64::from)),
    seldom("DCGM_FI_DEV_MEM_COPY_UTIL", |r| r.memory_busy.map(f64::from)),
    seldom("DCGM_FI_DEV_POWER_USAGE", |r| r.power_mw.map(|mw| f64::from(mw) / 1e3)),
    seldom("DCGM_FI_DEV_GPU_TEMP", |r| r.celsius.map(f64::from)),
    seldom("DCGM_FI_DEV_SM_CLOCK", |r| r.sm_mhz.map(f64::from)),
    seldom("DCGM_FI_DEV_MEM_CLOCK", |r| r.memory_mhz.map(f64::from)),
    metric("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", |r| n(r.throttle)),
];

/// Names of the DCGM exporter, then our own.
pub(super) const HEALTH: &[Metric<Health>] = &[
    metric("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", |h| n(h.ecc_corrected)),
    metric("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", |h| n(h.ecc_uncorrected)),
    metric("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", |h| h.pcie_replays.map(f64::from)),
    metric("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", |h| n(h.ecc_corrected_lifetime)),
    metric("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", |h| n(h.ecc_uncorrected_lifetime)),
    metric("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", |h| h.remapped_corrected.map(f64::from)),
    metric("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", |h| h.remapped_uncorrected.map(f64::from)),
    metric("DCGM_FI_DEV_ROW_REMAP_PENDING", |h| h.remap_pending.map(|p| f64::from(u8::from(p)))),
    metric("DCGM_FI_DEV_ROW_REMAP_FAILURE", |h| h.remap_failed.map(|f| f64::from(u8::from(f)))),
    metric("DCGM_FI_DEV_MEMORY_TEMP", |h| h.memory_celsius.map(f64::from)),
    // DCGM's own gauge keeps the last Xid for ever, whenever it was; counters tell when one came.
    metric("dualplane_gpu_xid_errors_total", |h| n(h.xids)),
    metric("dualplane_gpu_last_xid", |h| h.last_xid.map(f64::from)),
    metric("dualplane_gpu_pcie_sent_bytes_total", |h| n(h.pcie_sent)),
    metric("dualplane_gpu_pcie_received_bytes_total", |h| n(h.pcie_received)),
    metric("dualplane_gpu_nvlink0_sent_bytes_total", |h| n(h.nvlink0_sent)),
    metric("dualplane_gpu_nvlink0_received_bytes_total", |h| n(h.nvlink0_received)),
    metric("dualplane_gpu_nvlinks_up", |h| h.nvlinks.map(f64::from)),
    metric("dualplane_gpu_nvlink_errors_total", |h| n(h.nvlink_errors)),
];

/// An engine's numbers where the knowledge has no name for one: those of the agent's own metrics. With what a record's
/// field is to be divided by.
pub(super) const ENGINE: [(&str, f64); 8] = [
    ("dualplane_engine_kv_cache_usage_ratio", 1e6),
    ("dualplane_engine_requests_running", 1e3),
    ("dualplane_engine_requests_waiting", 1e3),
    ("dualplane_engine_preemptions_total", 1.0),
    ("dualplane_engine_first_tokens_total", 1.0),
    ("dualplane_engine_time_to_first_token_seconds_total", 1e6),
    ("dualplane_engine_prompt_tokens_total", 1.0),
    ("dualplane_engine_generated_tokens_total", 1.0),
];
