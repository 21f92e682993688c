//! The card that a plan is for.

use serde::Serialize;

use super::quantity::Quantity;

/// One GPU, or one MIG slice of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// Name in the catalogue, or as given.
    pub name: String,
    /// Name as the driver reports it (`NVIDIA A100-SXM4-80GB`). vLLM looks for `a100` in it to choose batch defaults.
    pub device_name: String,
    /// What `cudaMemGetInfo` reports as total, in bytes.
    pub total_bytes: u64,
    /// CUDA compute capability, `(9, 0)` for Hopper. It decides attention backends, and so block sizes and padding.
    pub capability: (u32, u32),
    /// Where the card and its host share one pool: what the host itself takes of it, in bytes.
    pub host_use: Option<Quantity>,
}

impl Gpu {
    /// The host's own memory, on which vLLM's CPU back end serves.
    #[must_use]
    pub fn of_host(total_bytes: u64) -> Self {
        Self {
            name: "CPU".into(),
            device_name: "cpu".into(),
            total_bytes,
            capability: (0, 0),
            host_use: None,
        }
    }

    /// Whether weights and cache stand in the host's RAM.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        self.capability == (0, 0)
    }

    /// Capability as vLLM compares it: 90 for `(9, 0)`.
    #[must_use]
    pub fn sm(&self) -> u32 {
        self.capability.0.saturating_mul(10).saturating_add(self.capability.1)
    }
}
