//! What nvidia-smi and its like show.

use crate::time::Stamp;
use crate::units::Bytes;

/// What a tool's output proves.
#[derive(Debug, Clone, PartialEq)]
pub enum Gpu {
    /// A process holds VRAM.
    Holder {
        /// Tool.
        tool: &'static str,
        /// Name of the process.
        process: String,
        /// Host pid.
        pid: u64,
        /// VRAM, where told.
        used: Option<Bytes>,
        /// When it was printed.
        at: Option<Stamp>,
        /// The error message names this pid.
        named: bool,
    },
    /// A process that no list shows holds VRAM.
    Unlisted {
        /// Tool.
        tool: &'static str,
        /// In use on the card.
        used: Bytes,
        /// By the listed processes.
        listed: Bytes,
    },
    /// The output is not of the time of the failure, and who is listed was probably there.
    HoldersLater,
    /// Nothing tells which GPU the container had.
    WhichUnknown,
    /// Free VRAM after the death.
    FreeLater {
        /// Tool.
        tool: &'static str,
        /// Free.
        free: Bytes,
        /// Of so much.
        total: Option<Bytes>,
    },
    /// The pod's card has a fault.
    Faulty {
        /// Tool.
        tool: &'static str,
        /// Which.
        fault: Fault,
    },
    /// A card has a fault that may not be the pod's.
    MaybeFaulty {
        /// Tool.
        tool: &'static str,
        /// Which.
        fault: Fault,
    },
    /// The fault has no time, and no Xid tells it.
    FaultWithoutTime,
    /// The same of a card that may not be the pod's.
    MaybeFaultWithoutTime,
    /// A temperature is of one moment.
    HeatOfAMoment,
    /// The pod requests a MIG resource of this name.
    MigRequested(String),
    /// A metric carries the label of a MIG profile.
    MigLabel {
        /// Metric.
        metric: String,
        /// Profile.
        profile: String,
    },
    /// The node's product label names a MIG profile.
    MigProduct(String),
    /// A line shows a MIG instance.
    MigLine(String),
    /// A listed MIG instance has the size that the error names.
    MigOfThisSize {
        /// Tool.
        tool: &'static str,
        /// Size.
        size: Bytes,
    },
    /// There is no MIG instance.
    NoMig,
    /// CPU and GPU share one pool.
    OnePool {
        /// The card.
        card: String,
    },
    /// Two pools, and the kernel may use both.
    CoherentPools {
        /// The card.
        card: String,
    },
}

impl Gpu {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Holder { .. } => "gpu.holder",
            Self::Unlisted { .. } => "gpu.unlisted",
            Self::HoldersLater => "gpu.holders_later",
            Self::WhichUnknown => "gpu.which_unknown",
            Self::FreeLater { .. } => "gpu.free_later",
            Self::Faulty { .. } => "gpu.faulty",
            Self::MaybeFaulty { .. } => "gpu.maybe_faulty",
            Self::FaultWithoutTime => "gpu.fault_without_time",
            Self::MaybeFaultWithoutTime => "gpu.maybe_fault_without_time",
            Self::HeatOfAMoment => "gpu.heat_of_a_moment",
            Self::MigRequested(_) => "gpu.mig_requested",
            Self::MigLabel { .. } => "gpu.mig_label",
            Self::MigProduct(_) => "gpu.mig_product",
            Self::MigLine(_) => "gpu.mig_line",
            Self::MigOfThisSize { .. } => "gpu.mig_of_this_size",
            Self::NoMig => "gpu.no_mig",
            Self::OnePool { .. } => "gpu.one_pool",
            Self::CoherentPools { .. } => "gpu.coherent_pools",
        }
    }
}

/// A memory fault of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Uncorrected ECC errors since the driver was loaded.
    Uncorrected(u64),
    /// Rows wait for a reset to be remapped.
    RemapPending,
    /// The chip is at its limit of temperature, in degrees Celsius.
    Hot(u32),
}
