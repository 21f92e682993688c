//! Exit codes that are signals.

/// What the signal proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The exit code of a crash.
    Crash {
        /// Exit code: 128 and the signal.
        exit_code: i64,
    },
    /// SIGTERM: something asked for the stop.
    Terminated,
    /// SIGSEGV.
    Segfault,
    /// SIGBUS.
    BusError,
    /// What backs `/dev/shm`.
    SharedMemory(SharedMemory),
    /// A mapped file that is cut off ends in SIGBUS, too.
    CutFile,
}

impl Signal {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Crash { .. } => "signal.crash",
            Self::Terminated => "signal.terminated",
            Self::Segfault => "signal.segfault",
            Self::BusError => "signal.bus_error",
            Self::SharedMemory(_) => "signal.shared_memory",
            Self::CutFile => "signal.cut_file",
        }
    }
}

/// What backs `/dev/shm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedMemory {
    /// A volume.
    Mounted,
    /// The runtime's default.
    Default,
    /// An excerpt of the object does not show it.
    Unknown,
}
