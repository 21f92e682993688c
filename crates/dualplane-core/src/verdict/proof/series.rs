//! Samples of metrics, one by one and over time.

use crate::time::Stamp;
use crate::units::Bytes;

/// What metrics prove.
#[derive(Debug, Clone, PartialEq)]
pub enum Series {
    /// One sample.
    Sample {
        /// Metric.
        name: String,
        /// Value.
        value: f64,
    },
    /// Metrics of an OOM kill tell neither process nor scope.
    NoProcess,
    /// Those of another container tell neither time nor process.
    OtherContainer,
    /// How full the KV cache was, of 1.
    KvCache(f64),
    /// The container's anonymous memory.
    AnonymousMemory(Peak),
    /// The container's working set, with the other plane at that moment.
    WorkingSet {
        /// Its peak.
        peak: Peak,
        /// The fullest GPU, and its share.
        vram: Option<(String, f64)>,
        /// Use of the KV cache, of 1.
        kv_cache: Option<f64>,
    },
    /// VRAM of a GPU at the moment of a host's peak.
    Vram(VramShare),
    /// VRAM of a GPU at the moment of an error, with the working set's peak.
    VramAtError {
        /// VRAM.
        vram: VramShare,
        /// Share of its limit that the working set never exceeded, and the limit.
        working_set: Option<(f64, Bytes)>,
    },
}

impl Series {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Sample { .. } => "series.sample",
            Self::NoProcess => "series.no_process",
            Self::OtherContainer => "series.other_container",
            Self::KvCache(_) => "series.kv_cache",
            Self::AnonymousMemory(_) => "series.anonymous_memory",
            Self::WorkingSet { .. } => "series.working_set",
            Self::Vram(_) => "series.vram",
            Self::VramAtError { .. } => "series.vram_at_error",
        }
    }
}

/// Host memory at its highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Used.
    pub used: Bytes,
    /// Limit.
    pub limit: Bytes,
    /// When.
    pub at: Option<Stamp>,
}

/// VRAM in use at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct VramShare {
    /// GPU, with its MIG instance.
    pub gpu: String,
    /// Used.
    pub used: Bytes,
    /// All of it.
    pub total: Bytes,
    /// When.
    pub at: Option<Stamp>,
}
