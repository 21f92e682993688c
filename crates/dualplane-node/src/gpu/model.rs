//! What a GPU says, with units.

use dualplane_base::units::Bytes;
use serde::Deserialize;

use crate::clock::Moment;

/// A place in the list of [`super::Gpus::devices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
pub struct DeviceId(pub u16);

/// A card or a MIG device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Device {
    /// `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Index of the card as the driver counts.
    pub index: u32,
    /// Number of the card's file, `/dev/nvidia3`; NVIDIA's driver for resource claims calls the card by it.
    pub minor: Option<u32>,
    /// `NVIDIA H100 80GB HBM3`; of a MIG device `NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
    pub name: String,
    /// `0000:4a:00`, as Xid lines write it; of a MIG device that of its card.
    pub pci: String,
    /// Of a MIG device: its card.
    pub card: Option<DeviceId>,
    /// Of a MIG device: GPU instance and compute instance, by which processes of the card are told apart.
    pub instance: Option<(u32, u32)>,
    /// Of a card: MIG is switched on.
    pub mig: Option<bool>,
    /// CUDA compute capability, `(9, 0)` for Hopper.
    pub capability: Option<(u32, u32)>,
}

impl Device {
    /// Of a MIG device: how much of its card it is, `1g.10gb`, `1g.10gb+me`.
    #[must_use]
    pub fn profile(&self) -> Option<&str> {
        let last = self.name.rsplit(' ').next().filter(|_| self.instance.is_some() || self.card.is_some())?;
        let (slices, memory) = last.split_once("g.")?;
        (slices.bytes().all(|b| b.is_ascii_digit()) && memory.contains("gb")).then_some(last)
    }

    /// A card or part of NVIDIA's: only its driver tells Xids.
    #[must_use]
    pub fn is_nvidia(&self) -> bool {
        self.uuid.starts_with("GPU-") || self.uuid.starts_with("MIG-")
    }
}

/// The driver of all cards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Driver {
    /// `570.133.20`.
    pub version: Option<String>,
    /// The newest CUDA that it serves: `(12, 8)`.
    pub cuda: Option<(u32, u32)>,
}

/// A device at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// Which.
    pub device: DeviceId,
    /// All memory.
    #[serde(deserialize_with = "bytes")]
    pub total: Option<Bytes>,
    /// In use by processes, without [`Self::reserved`].
    #[serde(deserialize_with = "bytes")]
    pub used: Option<Bytes>,
    /// Unused.
    #[serde(deserialize_with = "bytes")]
    pub free: Option<Bytes>,
    /// The driver's own.
    #[serde(deserialize_with = "bytes")]
    pub reserved: Option<Bytes>,
    /// Percent of time with a kernel running (not on MIG).
    pub busy: Option<u32>,
    /// Percent of time in which memory was read or written; says nothing of how full it is.
    pub memory_busy: Option<u32>,
    /// Milliwatts.
    pub power_mw: Option<u32>,
    /// Degrees Celsius.
    pub celsius: Option<u32>,
    /// Clock of the processors, MHz.
    pub sm_mhz: Option<u32>,
    /// Clock of the memory, MHz.
    pub memory_mhz: Option<u32>,
    /// Why clocks are low: bits of `nvmlClocksEventReasons`; 0x8, 0x20, 0x40 and 0x80 are faults.
    pub throttle: Option<u64>,
}

/// Bits of [`Reading::throttle`] that are faults: hardware slowdown, heat, power brake. A power cap under load is none.
const THROTTLE_FAULTS: u64 = 0x8 | 0x20 | 0x40 | 0x80;

impl Reading {
    /// Clocks are low for a reason that is a fault.
    #[must_use]
    pub fn throttled(&self) -> Option<bool> {
        self.throttle.map(|bits| bits & THROTTLE_FAULTS != 0)
    }
}

/// A process with memory on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct GpuProcess {
    /// Device; of a process on MIG the MIG device where it is known.
    pub device: DeviceId,
    /// Pid of the host; without hostPID it cannot be resolved.
    pub pid: u32,
    /// Its memory there; `None` where the driver does not tell.
    #[serde(deserialize_with = "bytes")]
    pub used: Option<Bytes>,
    /// It draws instead of computing, or it is a client of MPS.
    pub other_kind: bool,
}

/// Error counters of a card, and what moved over its links: what is read seldom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Which.
    pub device: DeviceId,
    /// Corrected memory errors since the driver was loaded.
    pub ecc_corrected: Option<u64>,
    /// Uncorrected ones.
    pub ecc_uncorrected: Option<u64>,
    /// Corrected ones over the card's life.
    pub ecc_corrected_lifetime: Option<u64>,
    /// Uncorrected ones over the card's life.
    pub ecc_uncorrected_lifetime: Option<u64>,
    /// Rows or pages of memory that were replaced after corrected errors.
    pub remapped_corrected: Option<u32>,
    /// The same after uncorrected ones.
    pub remapped_uncorrected: Option<u32>,
    /// A replacement waits for a reset of the card.
    pub remap_pending: Option<bool>,
    /// A replacement failed: no spare is left.
    pub remap_failed: Option<bool>,
    /// PCIe packets that were retransmitted.
    pub pcie_replays: Option<u32>,
    /// NVLinks that are up.
    pub nvlinks: Option<u32>,
    /// Replays, recoveries and CRC errors of all its NVLinks.
    pub nvlink_errors: Option<u64>,
    /// Bytes that the card sent over PCIe since the driver was loaded.
    pub pcie_sent: Option<u64>,
    /// Bytes that it received.
    pub pcie_received: Option<u64>,
    /// Bytes of data that it sent over its first NVLink; a card spreads its traffic over all of them.
    pub nvlink0_sent: Option<u64>,
    /// Bytes that it received over it.
    pub nvlink0_received: Option<u64>,
    /// Of the memory, degrees Celsius.
    pub memory_celsius: Option<u32>,
    /// Xids of this card since the agent began; counted by who reads the kernel's lines and the driver's events.
    pub xids: Option<u64>,
    /// The last of them.
    pub last_xid: Option<u32>,
}

/// An event that the driver reported through NVML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// UUID of the card.
    pub uuid: String,
    /// When it was received.
    pub at: Moment,
    /// The Xid; `None` for an ECC event.
    pub xid: Option<u64>,
}

fn bytes<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Bytes>, D::Error> {
    Ok(Option::<u64>::deserialize(d)?.map(Bytes))
}
