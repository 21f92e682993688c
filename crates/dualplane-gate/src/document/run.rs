//! One run: the load, both planes, what clients saw, and what the server said of itself.

use serde::{Deserialize, Serialize};

/// One run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// A name within the document: `1`, `burst`.
    pub name: String,
    /// When it began: RFC 3339.
    #[serde(default)]
    pub started_at: Option<String>,
    /// How the load was made.
    pub load: Load,
    /// Seconds until the server answered its first request, from its start; none where the start was not seen.
    #[serde(default)]
    pub start_seconds: Option<f64>,
    /// Seconds of load that were measured, without start and warm-up.
    pub measured_seconds: f64,
    /// It was ended early, by a person or a death: what was measured until then.
    #[serde(default)]
    pub cut_short: bool,
    /// Host RAM; none where nothing could be read.
    #[serde(default)]
    pub host: Option<PlaneFigures>,
    /// VRAM of all cards together; none where nothing could be read or there is no card.
    #[serde(default)]
    pub vram: Option<PlaneFigures>,
    /// Of what host RAM consisted when it held the most.
    #[serde(default)]
    pub host_split: Option<HostSplit>,
    /// Processes of the server, the largest first.
    #[serde(default)]
    pub processes: Vec<ProcessMemory>,
    /// The KV cache.
    #[serde(default)]
    pub kv: Option<Kv>,
    /// Requests that waited.
    #[serde(default)]
    pub queue: Option<Queue>,
    /// What clients saw.
    #[serde(default)]
    pub ttft: Option<Distribution>,
    /// Between two tokens of a request.
    #[serde(default)]
    pub itl: Option<Distribution>,
    /// Whole requests.
    #[serde(default)]
    pub e2e: Option<Distribution>,
    /// Where requests spent their time, as the server says it.
    #[serde(default)]
    pub timing: Option<Timing>,
    /// How many requests.
    #[serde(default)]
    pub requests: Option<Requests>,
    /// Work done.
    #[serde(default)]
    pub throughput: Option<Throughput>,
    /// How busy the machine was.
    #[serde(default, rename = "use")]
    pub used: Option<Use>,
    /// Restarts of the server within the run; none where nobody looked.
    #[serde(default)]
    pub restarts: Option<Vec<Restart>>,
    /// Faults of the cards; none where nobody looked.
    #[serde(default)]
    pub gpu_faults: Option<GpuFaults>,
    /// The run cut into equal windows, so that its noise can be estimated.
    #[serde(default)]
    pub windows: Vec<Window>,
    /// Both planes and the rest over time, on one clock, thinned out.
    #[serde(default)]
    pub series: Option<Series>,
}

/// How the load was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// `closed`, `open`, `ramp`, `burst`, `long-spike`, `cancel-storm`, `soak`, `tool`, `live`.
    pub mode: String,
    /// Requests at the same time, in a closed loop.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// Requests a second, in an open loop.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Seconds that it should last, with its warm-up.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Requests that should be sent.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Seconds at its beginning that do not count.
    #[serde(default)]
    pub warmup_seconds: Option<f64>,
    /// What its chance was made of.
    #[serde(default)]
    pub seed: Option<u64>,
}

impl Load {
    /// Requests of a shape were sent, not those of a tool, of users, or none.
    #[must_use]
    pub fn drives(&self) -> bool {
        !matches!(self.mode.as_str(), "tool" | "live" | "none" | "")
    }
}

/// Three numbers of one plane, its limit, and where it goes. Host RAM is what the kernel cannot take back where that is known
/// (anonymous memory and shared memory), else the working set: `without_page_cache`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaneFigures {
    /// The most while it started.
    #[serde(default)]
    pub start_up_bytes: Option<u64>,
    /// The median under load.
    #[serde(default)]
    pub steady_bytes: Option<u64>,
    /// The most of all.
    #[serde(default)]
    pub peak_bytes: Option<u64>,
    /// The limit: of the container, or of all cards together.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
    /// Page cache is not counted; always true of VRAM.
    #[serde(default)]
    pub without_page_cache: Option<bool>,
    /// Growth while it served; none where the series is too short to say.
    #[serde(default)]
    pub drift: Option<Drift>,
}

/// Growth of one plane while it served.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// Bytes an hour; negative where it shrank.
    pub bytes_per_hour: f64,
    /// Lower end of the interval that holds it with `confidence`.
    pub low_bytes_per_hour: f64,
    /// Upper end.
    pub high_bytes_per_hour: f64,
    /// 0.99, say.
    pub confidence: f64,
    /// Seconds of the series that it was estimated from.
    pub seconds: f64,
    /// Samples of that.
    pub samples: u64,
    /// It grows steadily, by the estimator's own judgement, and not only by chance.
    pub grows: bool,
}

/// Host RAM by kind, as the container's cgroup counts it, at the time of its peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSplit {
    /// Anonymous memory.
    #[serde(default)]
    pub anon_bytes: Option<u64>,
    /// Shared memory and tmpfs, `/dev/shm` with it.
    #[serde(default)]
    pub shmem_bytes: Option<u64>,
    /// Page cache of files, which the kernel takes back.
    #[serde(default)]
    pub file_bytes: Option<u64>,
    /// Locked and pinned, in part the same pages.
    #[serde(default)]
    pub pinned_bytes: Option<u64>,
    /// The kernel's own, for the container.
    #[serde(default)]
    pub kernel_bytes: Option<u64>,
}

/// One process of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessMemory {
    /// Its name, as the kernel or its title says it.
    pub name: String,
    /// The most that was resident.
    #[serde(default)]
    pub peak_bytes: Option<u64>,
    /// The most of anonymous memory.
    #[serde(default)]
    pub anon_bytes: Option<u64>,
    /// VRAM that the driver names for it, at most.
    #[serde(default)]
    pub vram_bytes: Option<u64>,
}

/// The KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kv {
    /// Tokens that it holds.
    #[serde(default)]
    pub capacity_tokens: Option<u64>,
    /// The most of it that was used, 0 to 1.
    #[serde(default)]
    pub high_water_share: Option<f64>,
    /// The mean of what was used, 0 to 1.
    #[serde(default)]
    pub mean_share: Option<f64>,
    /// Requests that lost their place and began anew.
    #[serde(default)]
    pub preemptions: Option<u64>,
    /// Requests that were refused because it cannot hold them.
    #[serde(default)]
    pub admission_failures: Option<u64>,
    /// Share of input tokens that the prefix cache had, 0 to 1.
    #[serde(default)]
    pub prefix_hit_share: Option<f64>,
}

/// Requests in the server.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// The most that waited at the same time.
    #[serde(default)]
    pub waiting_peak: Option<f64>,
    /// The mean that waited.
    #[serde(default)]
    pub waiting_mean: Option<f64>,
    /// The most that ran at the same time.
    #[serde(default)]
    pub running_peak: Option<f64>,
    /// The mean that ran.
    #[serde(default)]
    pub running_mean: Option<f64>,
}

/// A distribution of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Half are at most this.
    pub p50: f64,
    /// 90 % are.
    pub p90: f64,
    /// 95 % are.
    pub p95: f64,
    /// 99 % are.
    pub p99: f64,
    /// All are.
    pub max: f64,
}

/// Mean seconds of a request in each part of the server.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// It waited for its turn.
    #[serde(default)]
    pub queue_seconds: Option<f64>,
    /// Its input was computed.
    #[serde(default)]
    pub prefill_seconds: Option<f64>,
    /// Its output was computed.
    #[serde(default)]
    pub decode_seconds: Option<f64>,
}

/// How many requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Sent within the measured time.
    pub sent: u64,
    /// Answered in full.
    pub succeeded: u64,
    /// Answered in full and within the SLO; none where there is none.
    #[serde(default)]
    pub good: Option<u64>,
    /// Failed, by reason, the most frequent first.
    #[serde(default)]
    pub failed: Vec<Failed>,
    /// Cancelled by the client on purpose.
    #[serde(default)]
    pub cancelled: u64,
}

impl Requests {
    /// All that failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.iter().fold(0, |n, f| n.saturating_add(f.count))
    }
}

/// Requests that failed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// `http 503`, `timeout`, `connection refused`, `cut off`, `error in stream`.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// Work done a second, over the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// Requests that were answered in full.
    #[serde(default)]
    pub requests_per_second: Option<f64>,
    /// Of these, within the SLO: goodput.
    #[serde(default)]
    pub good_requests_per_second: Option<f64>,
    /// Tokens of inputs.
    #[serde(default)]
    pub input_tokens_per_second: Option<f64>,
    /// Tokens of outputs.
    #[serde(default)]
    pub output_tokens_per_second: Option<f64>,
    /// Price of a good request, in the currency of the document's cost.
    #[serde(default)]
    pub cost_per_good_request: Option<f64>,
}

/// How busy the machine was, means over the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// Share of time in which a kernel ran on the cards, 0 to 1.
    #[serde(default)]
    pub gpu_share: Option<f64>,
    /// Share of time in which the multiprocessors worked, 0 to 1 (DCGM's profiling).
    #[serde(default)]
    pub sm_share: Option<f64>,
    /// Share of the memory's bandwidth, 0 to 1.
    #[serde(default)]
    pub memory_bandwidth_share: Option<f64>,
    /// PCIe, both ways.
    #[serde(default)]
    pub pcie_bytes_per_second: Option<f64>,
    /// NVLink, both ways.
    #[serde(default)]
    pub nvlink_bytes_per_second: Option<f64>,
    /// All cards together.
    #[serde(default)]
    pub power_watts: Option<f64>,
    /// Clock of the multiprocessors.
    #[serde(default)]
    pub sm_clock_hertz: Option<f64>,
    /// Seconds in which power or heat held the clocks down.
    #[serde(default)]
    pub throttled_seconds: Option<f64>,
    /// Processors that the server used.
    #[serde(default)]
    pub cpu_cores: Option<f64>,
    /// Seconds in which its CPU limit held it back.
    #[serde(default)]
    pub cpu_throttled_seconds: Option<f64>,
    /// Network, both ways.
    #[serde(default)]
    pub network_bytes_per_second: Option<f64>,
}

/// One restart or death of the server, as triage judged it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// When: RFC 3339.
    #[serde(default)]
    pub at: Option<String>,
    /// The class of its verdict: `host_oom_killed`.
    #[serde(default)]
    pub class: Option<String>,
    /// The plane: `host`, `gpu`, `hardware`, `none`.
    #[serde(default)]
    pub plane: Option<String>,
    /// The line of the first error.
    #[serde(default)]
    pub trigger: Option<String>,
    /// Exit code of the container or process.
    #[serde(default)]
    pub exit_code: Option<i32>,
}

/// Faults of the cards within the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuFaults {
    /// Xid codes in the order that the kernel told them; none where the kernel's log was not read.
    #[serde(default)]
    pub xids: Option<Vec<u32>>,
    /// Memory errors that were not corrected.
    #[serde(default)]
    pub ecc_uncorrected: Option<u64>,
    /// Memory errors that were corrected.
    #[serde(default)]
    pub ecc_corrected: Option<u64>,
    /// Rows that were remapped, or wait for it.
    #[serde(default)]
    pub rows_remapped: Option<u64>,
}

/// A window of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Where it begins, on the run's clock.
    pub from_seconds: f64,
    /// How long it is.
    pub seconds: f64,
    /// The most of host RAM, counted as in [`Run::host`].
    #[serde(default)]
    pub host_bytes: Option<u64>,
    /// The most of VRAM.
    #[serde(default)]
    pub vram_bytes: Option<u64>,
    /// The most of the KV cache, 0 to 1.
    #[serde(default)]
    pub kv_share: Option<f64>,
    /// Preemptions within it.
    #[serde(default)]
    pub preemptions: Option<u64>,
    /// The mean of requests that waited.
    #[serde(default)]
    pub waiting: Option<f64>,
    /// The mean of requests that ran.
    #[serde(default)]
    pub running: Option<f64>,
    /// Requests that ended in it, answered in full.
    #[serde(default)]
    pub succeeded: Option<u64>,
    /// Of these, within the SLO.
    #[serde(default)]
    pub good: Option<u64>,
    /// Requests that failed in it.
    #[serde(default)]
    pub failed: Option<u64>,
    /// Tokens of outputs.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// Seconds to the first token: median of the requests that ended in it.
    #[serde(default)]
    pub ttft_p50: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub ttft_p99: Option<f64>,
    /// Between two tokens: median.
    #[serde(default)]
    pub itl_p50: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub itl_p99: Option<f64>,
    /// Whole requests: median.
    #[serde(default)]
    pub e2e_p50: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub e2e_p99: Option<f64>,
    /// How busy the cards were, 0 to 1.
    #[serde(default)]
    pub gpu_share: Option<f64>,
    /// Processors that the server used.
    #[serde(default)]
    pub cpu_cores: Option<f64>,
}

/// Values over time on one clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Seconds on the run's clock, rising: 0 is the start of the run, and the start of the server where it was seen.
    pub seconds: Vec<f64>,
    /// Each with one value for each time.
    pub lines: Vec<Line>,
}

/// One value over time. Names that readers know: `host` (counted as in [`Run::host`]), `host.anon`, `host.shmem`,
/// `host.file`, `host.limit`, `vram`, `vram.limit`, `kv`, `waiting`, `running`, `gpu`, `cpu`, `rate`, `good`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// `bytes`, `share`, `requests`, `cores`, `1/s`, `seconds`.
    pub unit: String,
    /// By time; null where it was not read.
    pub values: Vec<Option<f64>>,
}
