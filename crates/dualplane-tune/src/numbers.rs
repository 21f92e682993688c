//! The numbers that decide, from all runs of a report.

use dualplane_gate::document::{Measure, Run, Window};
use serde::{Deserialize, Serialize};

/// What was measured; what was not is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Numbers {
    /// How busy the cards were, or the processors where the server has no card, 0 to 1.
    pub busy: Option<f64>,
    /// What that is of: `cards`, `processors`.
    pub busy_of: Option<String>,
    /// Requests that waited, mean.
    pub waiting: Option<f64>,
    /// Requests that ran, mean.
    pub running: Option<f64>,
    /// Requests that waited, at most.
    pub waiting_peak: Option<f64>,
    /// Requests that ran, at most.
    pub running_peak: Option<f64>,
    /// Good requests as a share of those sent and not cancelled.
    pub good_share: Option<f64>,
    /// Good requests a second; all that were answered where there is no SLO.
    pub goodput: Option<f64>,
    /// An SLO says what is good.
    pub has_slo: bool,
    /// Failed requests as a share of those sent.
    pub error_share: Option<f64>,
    /// Host RAM at its peak, as a share of its limit.
    pub host_share: Option<f64>,
    /// VRAM at its peak, as a share of the cards'.
    pub vram_share: Option<f64>,
    /// The KV cache at its fullest, 0 to 1.
    pub kv_share: Option<f64>,
    /// Tokens that it holds.
    pub kv_tokens: Option<u64>,
    /// Tokens of a request at its end, mean, without those that the prefix cache had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_of_each: Option<f64>,
    /// Requests that lost their place.
    pub preemptions: Option<u64>,
    /// Restarts and deaths.
    pub restarts: Option<u64>,
    /// Seconds to the first token, p99.
    pub ttft_p99: Option<f64>,
    /// Seconds of a request, p99.
    pub e2e_p99: Option<f64>,
    /// Good requests a second in each window, in order, each at least as long as a request: what the noise is estimated from.
    pub windows: Vec<f64>,
    /// Seconds that were measured, over all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Host RAM at its peak.
    pub host_bytes: Option<u64>,
    /// VRAM at its peak.
    pub vram_bytes: Option<u64>,
}

impl Numbers {
    /// Means over the runs, and the most of what must not be exceeded.
    #[must_use]
    pub fn of(m: &Measure) -> Self {
        let mean = |get: &dyn Fn(&Run) -> Option<f64>| {
            let all: Vec<f64> = m.runs.iter().filter_map(get).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        let most = |get: &dyn Fn(&Run) -> Option<f64>| m.runs.iter().filter_map(get).reduce(f64::max);
        let total = |get: &dyn Fn(&Run) -> Option<u64>| {
            let all: Vec<u64> = m.runs.iter().filter_map(get).collect();
            (!all.is_empty()).then(|| all.iter().fold(0_u64, |a, b| a.saturating_add(*b)))
        };
        let no_cards = m.hardware.gpus.as_ref().is_some_and(Vec::is_empty);
        let cores = m.hardware.cpu_limit.or(m.hardware.cpus.map(f64::from)).filter(|c| *c > 0.0);
        let cards = mean(&|r| r.used.as_ref().and_then(|u| u.sm_share.or(u.gpu_share)));
        let processors = mean(&|r| Some((r.used.as_ref()?.cpu_cores? / cores?).min(1.0)));
        let (busy, of) = if no_cards { (processors, "processors") } else { (cards, "cards") };
        let has_slo =
            m.slo.as_ref().is_some_and(|s| s.ttft_seconds.or(s.itl_seconds).or(s.e2e_seconds).is_some());
        let limit = m.hardware.memory_limit_bytes;
        let share =
            |used: Option<u64>, limit: Option<u64>| Some(used? as f64 / limit.filter(|l| *l > 0)? as f64);
        let asked =
            |r: &Run| r.requests.as_ref().map(|q| q.sent.saturating_sub(q.cancelled)).filter(|n| *n > 0);
        Self {
            busy,
            busy_of: busy.map(|_| of.to_owned()),
            waiting: mean(&|r| r.queue.as_ref()?.waiting_mean),
            running: mean(&|r| r.queue.as_ref()?.running_mean),
            waiting_peak: most(&|r| r.queue.as_ref()?.waiting_peak),
            running_peak: most(&|r| r.queue.as_ref()?.running_peak),
            good_share: mean(&|r| Some(r.requests.as_ref()?.good? as f64 / asked(r)? as f64)),
            goodput: mean(&|r| {
                let t = r.throughput.as_ref()?;
                if has_slo { t.good_requests_per_second } else { t.requests_per_second }
            }),
            has_slo,
            error_share: mean(&|r| {
                let q = r.requests.as_ref().filter(|q| q.sent > 0)?;
                Some(q.failures() as f64 / q.sent as f64)
            }),
            host_share: most(&|r| {
                let p = r.host.as_ref()?;
                share(p.peak_bytes, p.limit_bytes.or(limit))
            }),
            vram_share: most(&|r| share(r.vram.as_ref()?.peak_bytes, r.vram.as_ref()?.limit_bytes)),
            kv_share: most(&|r| r.kv.as_ref()?.high_water_share),
            kv_tokens: m.runs.iter().filter_map(|r| r.kv.as_ref()?.capacity_tokens).max(),
            tokens_of_each: mean(&|r| {
                let t = r.throughput.as_ref()?;
                let shared = r.kv.as_ref().and_then(|kv| kv.prefix_hit_share).unwrap_or_default();
                let own = t.input_tokens_per_second? * (1.0 - shared) + t.output_tokens_per_second?;
                Some(own / t.requests_per_second.filter(|n| *n > 0.0)?)
            }),
            preemptions: total(&|r| r.kv.as_ref()?.preemptions),
            restarts: total(&|r| Some(r.restarts.as_ref()?.len() as u64)),
            ttft_p99: most(&|r| Some(r.ttft.as_ref()?.p99)),
            e2e_p99: most(&|r| Some(r.e2e.as_ref()?.p99)),
            windows: m.runs.iter().flat_map(|r| rates(r, has_slo)).collect(),
            seconds: Some(m.runs.iter().map(|r| r.measured_seconds).sum::<f64>()).filter(|s| *s > 0.0),
            host_bytes: m.runs.iter().filter_map(|r| r.host.as_ref()?.peak_bytes).max(),
            vram_bytes: m.runs.iter().filter_map(|r| r.vram.as_ref()?.peak_bytes).max(),
        }
    }
}

/// Good requests a second in the windows of a run. In a closed loop requests end in waves, as far apart as a request takes: a
/// shorter window counts waves, so neighbours are put together until they are as long as that.
fn rates(r: &Run, has_slo: bool) -> Vec<f64> {
    let counted = |w: &Window| if has_slo { w.good } else { w.succeeded };
    let long = r.e2e.as_ref().map_or(0.0, |e| e.p50);
    let window = r.windows.first().map_or(1.0, |w| w.seconds.max(f64::MIN_POSITIVE));
    let together = ((long / window).ceil() as usize).clamp(1, r.windows.len().max(1));
    let groups = r.windows.chunks_exact(together);
    groups
        .filter_map(|g| {
            let seconds: f64 = g.iter().map(|w| w.seconds).sum();
            let count: u64 = g.iter().map(counted).sum::<Option<u64>>()?;
            (seconds > 0.0).then(|| count as f64 / seconds)
        })
        .collect()
}
