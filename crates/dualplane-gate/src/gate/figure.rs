//! Figures that two builds are compared by: where a run and its windows hold each.

use serde::{Deserialize, Serialize};

use crate::document::{Distribution, PlaneFigures, Run, Window};

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Host RAM, at most while it starts.
    HostStartUp,
    /// Host RAM, the median under load.
    HostSteady,
    /// Host RAM, at most.
    HostPeak,
    /// VRAM, at most while it starts.
    VramStartUp,
    /// VRAM, the median under load.
    VramSteady,
    /// VRAM, at most.
    VramPeak,
    /// The KV cache, at most.
    KvHighWater,
    /// Seconds of a start.
    StartSeconds,
    /// Seconds to the first token.
    TtftP50,
    /// Seconds to the first token.
    TtftP99,
    /// Seconds between two tokens.
    ItlP50,
    /// Seconds between two tokens.
    ItlP99,
    /// Seconds of a request.
    E2eP50,
    /// Seconds of a request.
    E2eP99,
    /// Good requests a second.
    Goodput,
    /// Requests a second.
    RequestsPerSecond,
    /// Tokens of outputs a second.
    OutputTokensPerSecond,
    /// The price of a good request.
    CostPerGoodRequest,
}

/// How a figure is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Percent.
    Share,
    /// By the second.
    Rate,
    /// A plain number.
    Plain,
}

impl Figure {
    /// Its key in a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HostStartUp => "host_start_up",
            Self::HostSteady => "host_steady",
            Self::HostPeak => "host_peak",
            Self::VramStartUp => "vram_start_up",
            Self::VramSteady => "vram_steady",
            Self::VramPeak => "vram_peak",
            Self::KvHighWater => "kv_high_water",
            Self::StartSeconds => "start_seconds",
            Self::TtftP50 => "ttft_p50",
            Self::TtftP99 => "ttft_p99",
            Self::ItlP50 => "itl_p50",
            Self::ItlP99 => "itl_p99",
            Self::E2eP50 => "e2e_p50",
            Self::E2eP99 => "e2e_p99",
            Self::Goodput => "goodput",
            Self::RequestsPerSecond => "requests_per_second",
            Self::OutputTokensPerSecond => "output_tokens_per_second",
            Self::CostPerGoodRequest => "cost_per_good_request",
        }
    }

    /// What it is, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::HostStartUp => "host RAM at start-up",
            Self::HostSteady => "host RAM under load",
            Self::HostPeak => "host RAM at its peak",
            Self::VramStartUp => "VRAM at start-up",
            Self::VramSteady => "VRAM under load",
            Self::VramPeak => "VRAM at its peak",
            Self::KvHighWater => "KV cache at its fullest",
            Self::StartSeconds => "time to start",
            Self::TtftP50 => "time to first token, median",
            Self::TtftP99 => "time to first token, p99",
            Self::ItlP50 => "time between tokens, median",
            Self::ItlP99 => "time between tokens, p99",
            Self::E2eP50 => "time of a request, median",
            Self::E2eP99 => "time of a request, p99",
            Self::Goodput => "goodput",
            Self::RequestsPerSecond => "requests",
            Self::OutputTokensPerSecond => "output tokens",
            Self::CostPerGoodRequest => "cost of a good request",
        }
    }

    /// How it is printed.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::HostStartUp | Self::HostSteady | Self::HostPeak => Unit::Bytes,
            Self::VramStartUp | Self::VramSteady | Self::VramPeak => Unit::Bytes,
            Self::KvHighWater => Unit::Share,
            Self::Goodput | Self::RequestsPerSecond | Self::OutputTokensPerSecond => Unit::Rate,
            Self::CostPerGoodRequest => Unit::Plain,
            _ => Unit::Seconds,
        }
    }

    /// Less of it is worse.
    #[must_use]
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::Goodput | Self::RequestsPerSecond | Self::OutputTokensPerSecond)
    }

    /// It is of the cards.
    #[must_use]
    pub const fn of_vram(self) -> bool {
        matches!(self, Self::VramStartUp | Self::VramSteady | Self::VramPeak)
    }

    /// Its value in a run.
    #[must_use]
    pub fn of(self, run: &Run) -> Option<f64> {
        let plane = |p: &Option<PlaneFigures>, get: fn(&PlaneFigures) -> Option<u64>| {
            p.as_ref().and_then(get).map(|b| b as f64)
        };
        let seconds = |d: &Option<Distribution>, get: fn(&Distribution) -> f64| d.as_ref().map(get);
        let work = run.throughput.as_ref();
        match self {
            Self::HostStartUp => plane(&run.host, |p| p.start_up_bytes),
            Self::HostSteady => plane(&run.host, |p| p.steady_bytes),
            Self::HostPeak => plane(&run.host, |p| p.peak_bytes),
            Self::VramStartUp => plane(&run.vram, |p| p.start_up_bytes),
            Self::VramSteady => plane(&run.vram, |p| p.steady_bytes),
            Self::VramPeak => plane(&run.vram, |p| p.peak_bytes),
            Self::KvHighWater => run.kv.as_ref()?.high_water_share,
            Self::StartSeconds => run.start_seconds,
            Self::TtftP50 => seconds(&run.ttft, |d| d.p50),
            Self::TtftP99 => seconds(&run.ttft, |d| d.p99),
            Self::ItlP50 => seconds(&run.itl, |d| d.p50),
            Self::ItlP99 => seconds(&run.itl, |d| d.p99),
            Self::E2eP50 => seconds(&run.e2e, |d| d.p50),
            Self::E2eP99 => seconds(&run.e2e, |d| d.p99),
            Self::Goodput => work?.good_requests_per_second,
            Self::RequestsPerSecond => work?.requests_per_second,
            Self::OutputTokensPerSecond => work?.output_tokens_per_second,
            Self::CostPerGoodRequest => work?.cost_per_good_request,
        }
    }

    /// Its value in a window; none where windows do not hold it.
    #[must_use]
    pub fn within(self, w: &Window) -> Option<f64> {
        let rate = |n: Option<u64>| n.map(|n| n as f64 / w.seconds.max(f64::MIN_POSITIVE));
        match self {
            Self::HostSteady | Self::HostPeak => w.host_bytes.map(|b| b as f64),
            Self::VramSteady | Self::VramPeak => w.vram_bytes.map(|b| b as f64),
            Self::KvHighWater => w.kv_share,
            Self::TtftP50 => w.ttft_p50,
            Self::TtftP99 => w.ttft_p99,
            Self::ItlP50 => w.itl_p50,
            Self::ItlP99 => w.itl_p99,
            Self::E2eP50 => w.e2e_p50,
            Self::E2eP99 => w.e2e_p99,
            Self::Goodput => rate(w.good),
            Self::RequestsPerSecond => rate(w.succeeded),
            Self::OutputTokensPerSecond => rate(w.output_tokens),
            Self::HostStartUp | Self::VramStartUp | Self::StartSeconds | Self::CostPerGoodRequest => None,
        }
    }
}
