//! Sizes of a VRAM error, and what they sum up to.

use crate::units::Bytes;

/// What the sizes prove.
#[derive(Debug, Clone, PartialEq)]
pub enum Vram {
    /// The message has no sizes.
    NoSizes,
    /// The log does not tell loading from serving.
    UnknownPhase,
    /// A memory fraction caps the process.
    Fraction(Bytes),
    /// Others hold what the request needs.
    Others {
        /// Of the GPU.
        total: Bytes,
        /// Free.
        free: Bytes,
        /// This process.
        own: Bytes,
        /// What is left is of others.
        others: Bytes,
        /// Requested.
        requested: Bytes,
    },
    /// Others hold so much of the GPU.
    HeldByOthers {
        /// By others.
        others: Bytes,
        /// Of the GPU.
        total: Bytes,
    },
    /// Idle memory covers the request, but tensors fill the GPU.
    FullOfTensors {
        /// Reserved and idle.
        idle: Bytes,
        /// Requested.
        requested: Bytes,
        /// Held by tensors.
        allocated: Bytes,
        /// Of the GPU.
        total: Bytes,
    },
    /// Idle memory covers the request, and it failed.
    Holes {
        /// Reserved and idle, as printed.
        reserved: Bytes,
        /// CUDA graphs keep this part of it.
        graphs: Bytes,
        /// What is left of it.
        idle: Bytes,
        /// Why that would have been enough.
        enough: Enough,
        /// Requested.
        requested: Bytes,
        /// Held by tensors.
        allocated: Bytes,
        /// Of the GPU.
        total: Bytes,
    },
    /// Idle memory against the request, where it does not explain the error.
    IdleAndRequested {
        /// Reserved and idle.
        idle: Bytes,
        /// Requested.
        requested: Bytes,
        /// Held by tensors.
        allocated: Bytes,
        /// Of the GPU.
        total: Bytes,
    },
    /// PyTorch's own summary.
    Ledger {
        /// Device.
        device: u32,
        /// Reserved.
        reserved: Bytes,
        /// Held by tensors.
        allocated: Bytes,
        /// Idle in fragments of used blocks.
        fragments: Option<Bytes>,
    },
    /// The summary was printed after the failure.
    LedgerLater,
    /// Memory in use before the profile run.
    BeforeProfile {
        /// In use.
        initial: Bytes,
        /// By this process.
        own: Bytes,
    },
    /// Memory that was not free at the start.
    NotFreeAtStart {
        /// The server's share.
        budget: Bytes,
        /// As a fraction.
        share: f64,
        /// Of the GPU, by the two.
        total: Bytes,
        /// Free.
        free: Bytes,
    },
    /// More memory outside of PyTorch's allocator than one process has.
    OutsideTorch {
        /// Outside.
        outside: Bytes,
        /// Of the GPU.
        total: Bytes,
        /// What one process has.
        own: Bytes,
    },
}

impl Vram {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::NoSizes => "vram.no_sizes",
            Self::UnknownPhase => "vram.unknown_phase",
            Self::Fraction(_) => "vram.fraction",
            Self::Others { .. } => "vram.others",
            Self::HeldByOthers { .. } => "vram.held_by_others",
            Self::FullOfTensors { .. } => "vram.full_of_tensors",
            Self::Holes { .. } => "vram.holes",
            Self::IdleAndRequested { .. } => "vram.idle_and_requested",
            Self::Ledger { .. } => "vram.ledger",
            Self::LedgerLater => "vram.ledger_later",
            Self::BeforeProfile { .. } => "vram.before_profile",
            Self::NotFreeAtStart { .. } => "vram.not_free_at_start",
            Self::OutsideTorch { .. } => "vram.outside_torch",
        }
    }
}

/// Why idle memory would have been enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enough {
    /// By itself.
    Alone,
    /// With this much free.
    WithFree(Bytes),
}
