//! Cards and MIG profiles with the sizes that drivers report.

use serde::Deserialize;

use crate::units::{Bytes, MIB};

/// One card of the catalogue.
#[derive(Debug, Deserialize)]
pub struct Gpu {
    /// Catalogue id, `H100-80GB`.
    pub id: String,
    /// Names in NVML, nvidia-smi, node labels.
    #[serde(default)]
    pub names: Vec<String>,
    /// Driver-reported total in MiB.
    #[serde(default)]
    pub total_mib: Option<u64>,
    /// What `cudaMemGetInfo` reports as total, in GiB, as engines' start-up logs print it.
    #[serde(default)]
    pub torch_total_gib: Option<f64>,
    /// The least and the most that logs of several machines printed for it, in GiB.
    #[serde(default)]
    pub torch_total_seen_gib: Option<(f64, f64)>,
    /// Memory of the total that the driver keeps, in MiB.
    #[serde(default)]
    pub reserved_mib: Option<u64>,
    /// CUDA compute capability (`9.0`), or the target of AMD's compiler (`gfx942`).
    #[serde(default)]
    pub compute_capability: Option<String>,
    /// Memory is shared with the host (no VRAM of its own).
    #[serde(default)]
    pub unified_memory: bool,
    /// Of a shared pool: what the machine itself takes before a server starts, in GiB; the least, the usual and the most
    /// that was seen.
    #[serde(default)]
    pub host_use_gib: Option<(f64, f64, f64)>,
    /// Two pools, and the kernel sees both: the card's memory may be a NUMA node of the machine.
    #[serde(default)]
    pub coherent_memory: bool,
    /// Where its figures come from.
    #[serde(default)]
    pub source: String,
    /// MIG profiles.
    #[serde(default)]
    pub mig: Vec<MigProfile>,
}

/// One MIG profile of a card.
#[derive(Debug, Deserialize)]
pub struct MigProfile {
    /// `1g.10gb`.
    pub profile: String,
    /// How many fit on one card.
    #[serde(default)]
    pub max_count: Option<u32>,
    /// Driver-reported size in MiB, where measured.
    #[serde(default)]
    pub mib: Option<u64>,
    /// Memory slices of eight.
    #[serde(default)]
    pub slices: Option<u64>,
}

impl Gpu {
    /// Total memory as the driver reports it.
    #[must_use]
    pub fn total(&self) -> Option<Bytes> {
        self.total_mib.map(|m| Bytes(m * MIB))
    }

    /// Size of a MIG profile: measured, or its slices of the card (an upper bound: each instance reserves some).
    #[must_use]
    pub fn mig_size(&self, profile: &MigProfile) -> Option<Bytes> {
        profile
            .mib
            .map(|m| Bytes(m * MIB))
            .or_else(|| Some(Bytes(self.total()?.0 / 8 * profile.slices?.min(8))))
    }
}

/// Lower case, vendor words and separators removed: `NVIDIA H100 80GB HBM3` and `h100-80gb` meet.
fn normal(name: &str) -> String {
    let mut n = name.to_ascii_lowercase();
    for word in ["nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "-shared"] {
        n = n.replace(word, "");
    }
    if let Some(i) = n.find("-mig-") {
        n.truncate(i);
    }
    n.retain(|c| c.is_ascii_alphanumeric());
    n
}

/// The card that a name means, among these.
#[must_use]
pub fn find<'a>(gpus: &'a [Gpu], name: &str) -> Option<&'a Gpu> {
    // Whoever goes through all cards asks for each by its own id.
    if let Some(itself) = gpus.iter().find(|g| g.id == name) {
        return Some(itself);
    }
    let want = normal(name);
    if want.is_empty() {
        return None;
    }
    gpus.iter().find(|g| normal(&g.id) == want || g.names.iter().any(|n| normal(n) == want))
}
