//! The GPU driver's Xid events.

/// What Xid events prove.
#[derive(Debug, Clone, PartialEq)]
pub enum Xid {
    /// An event.
    Event {
        /// Code.
        code: u32,
        /// `0000:4a:00`.
        pci: String,
        /// Its name in the catalogue.
        name: Option<String>,
    },
    /// Another event of the same GPU.
    Further {
        /// Code.
        code: u32,
        /// Its name in the catalogue.
        name: Option<String>,
    },
    /// An Xid 45 names this one as its cause.
    CausedCleanup(u32),
    /// The line of this event is not among the evidence.
    NoLine(u32),
    /// There is no event at all.
    None,
    /// Programs cause this code more often than hardware.
    OftenByProgram,
    /// A clean-up or information: nothing ended by it.
    Consequence(u32),
    /// The same, as all that a log shows.
    OnlyConsequence(u32),
    /// It is of another GPU than the pod's.
    OtherGpu {
        /// Addresses of the pod's GPUs.
        own: Vec<String>,
        /// Address in the line.
        address: String,
    },
    /// A gauge keeps the last code.
    Gauge,
}

impl Xid {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Event { .. } => "xid.event",
            Self::Further { .. } => "xid.further",
            Self::CausedCleanup(_) => "xid.caused_cleanup",
            Self::NoLine(_) => "xid.no_line",
            Self::None => "xid.none",
            Self::OftenByProgram => "xid.often_by_program",
            Self::Consequence(_) => "xid.consequence",
            Self::OnlyConsequence(_) => "xid.only_consequence",
            Self::OtherGpu { .. } => "xid.other_gpu",
            Self::Gauge => "xid.gauge",
        }
    }
}
