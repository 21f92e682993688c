//! What a tool printed of the GPUs at one moment: cards, MIG instances and the processes on them.
//!
//! A snapshot is nearly always taken after a death. What it shows as free says nothing of the moment before.

use crate::time::Stamp;
use crate::units::Bytes;

/// One printout of one tool.
#[derive(Debug, Clone, Default)]
pub struct GpuSnapshot {
    /// File.
    pub file: String,
    /// Its first line, from 1.
    pub line: u64,
    /// `nvidia-smi`, `rocm-smi`, `amd-smi`, `dcgmi dmon` …
    pub tool: &'static str,
    /// When, where it was printed.
    pub stamp: Option<Stamp>,
    /// Cards.
    pub gpus: Vec<Gpu>,
    /// MIG instances.
    pub mig: Vec<MigInstance>,
    /// Processes.
    pub processes: Vec<GpuProcess>,
}

/// A card.
#[derive(Debug, Clone, Default)]
pub struct Gpu {
    /// Line, from 1.
    pub line: u64,
    /// When this row was printed, where a tool that repeats itself tells.
    pub stamp: Option<Stamp>,
    /// Index of the tool: in a container it counts the container's cards only.
    pub index: Option<u32>,
    /// Product name.
    pub name: Option<String>,
    /// `GPU-…`.
    pub uuid: Option<String>,
    /// PCI address, lower case, with a domain of at most eight digits as printed.
    pub pci: Option<String>,
    /// VRAM of the card.
    pub total: Option<Bytes>,
    /// In use.
    pub used: Option<Bytes>,
    /// Free.
    pub free: Option<Bytes>,
    /// Uncorrected ECC errors since the driver was loaded (volatile).
    pub ecc_uncorrected: Option<u64>,
    /// The card waits for a reset to remap rows.
    pub remap_pending: bool,
    /// Share of the last moment in which it worked, in percent.
    pub busy: Option<u8>,
    /// Temperature of the chip, in degrees Celsius.
    pub celsius: Option<u32>,
    /// MIG mode is on: the card's own figures are those of no workload.
    pub mig_enabled: bool,
}

/// A MIG instance.
#[derive(Debug, Clone, Default)]
pub struct MigInstance {
    /// Line, from 1.
    pub line: u64,
    /// Index of the card.
    pub gpu: Option<u32>,
    /// GPU instance id.
    pub instance: Option<u32>,
    /// `1g.18gb`.
    pub profile: Option<String>,
    /// Product name of the card.
    pub card: Option<String>,
    /// VRAM of the instance.
    pub total: Option<Bytes>,
    /// In use.
    pub used: Option<Bytes>,
    /// The line itself.
    pub text: String,
}

/// A process on a card.
#[derive(Debug, Clone, Default)]
pub struct GpuProcess {
    /// Line, from 1.
    pub line: u64,
    /// Index of the card.
    pub gpu: Option<u32>,
    /// UUID or PCI address of the card, where that is what was printed.
    pub card: Option<String>,
    /// GPU instance id, on MIG.
    pub instance: Option<u32>,
    /// Pid in the driver's namespace, which is the host's.
    pub pid: u64,
    /// Name, cut as the tool cuts it.
    pub name: String,
    /// VRAM that it holds; not told everywhere.
    pub used: Option<Bytes>,
}

/// A temperature at which a card slows down to protect itself or is about to.
#[must_use]
pub fn hot(celsius: u32) -> Option<u32> {
    // NVIDIA's data-centre cards slow down at 87 to 95 °C (nvidia-smi -q: "GPU Slowdown Temp"); 90 is the usual alert.
    const HOT: u32 = 90;
    // Above this it is an exporter's mark of a value that it could not read.
    (HOT..200).contains(&celsius).then_some(celsius)
}

impl GpuSnapshot {
    /// Nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gpus.is_empty() && self.mig.is_empty() && self.processes.is_empty()
    }

    /// The card a process is on, if it is among these.
    #[must_use]
    pub fn card_of(&self, p: &GpuProcess) -> Option<&Gpu> {
        self.gpus.iter().find(|g| match (&p.card, p.gpu) {
            (Some(card), _) => g.is_called(card),
            (None, Some(index)) => g.index == Some(index),
            (None, None) => false,
        })
    }
}

impl Gpu {
    /// Uncorrected ECC errors, where there are any.
    #[must_use]
    pub fn uncorrected(&self) -> Option<u64> {
        self.ecc_uncorrected.filter(|n| *n > 0)
    }

    /// Its counters show a fault of its memory.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        self.remap_pending || self.uncorrected().is_some()
    }

    /// Its temperature, where the card slows down to protect itself or is about to.
    #[must_use]
    pub fn hot(&self) -> Option<u32> {
        self.celsius.and_then(hot)
    }

    /// What people call it: its index, else its PCI address.
    #[must_use]
    pub fn label(&self) -> String {
        self.index.map_or_else(|| self.pci.clone().unwrap_or_default(), |i| i.to_string())
    }

    /// The name is this card's UUID or PCI address.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.uuid.as_deref().is_some_and(|u| u.eq_ignore_ascii_case(name))
            || self.pci.as_deref().is_some_and(|p| p.eq_ignore_ascii_case(name))
    }
}
