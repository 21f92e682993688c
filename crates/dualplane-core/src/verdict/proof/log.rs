//! What logs show, and what they do not.

/// What a log proves.
#[derive(Debug, Clone, PartialEq)]
pub enum Log {
    /// The server kept serving long after the line.
    ServedOn,
    /// The server answered for a while behind the line, neither long nor not at all.
    ServedForAWhile {
        /// Lines to the last sign of an answer.
        lines: u64,
        /// Time to it, where known.
        ms: Option<i64>,
        /// It is taken to have lived on.
        lived_on: bool,
    },
    /// The error and the kill lie so far apart that one need not be of the other.
    LongBeforeTheKill {
        /// Time between them.
        ms: i64,
    },
    /// The server was up so many lines after it.
    UpAfter(u64),
    /// Only the wording of an exception tells its class.
    Unrecognised,
    /// What else may stand behind a known failure, in the words of its signature.
    Doubt(String),
    /// A traceback lost the line that names its error.
    CutTraceback,
    /// The engine has a way around the error, and nothing failed.
    Fallback,
    /// The log's clock is in another time zone than the API's.
    OtherZone {
        /// Milliseconds that were taken off.
        zone_ms: i64,
    },
    /// No VRAM error in so many lines of so many files.
    NoVramError {
        /// Lines.
        lines: u64,
        /// Files.
        files: usize,
    },
    /// No line is known.
    NothingKnown {
        /// Lines.
        lines: u64,
    },
    /// Why nothing of a file could be read.
    Unreadable(String),
    /// No memory error.
    NoMemoryError {
        /// Lines.
        lines: u64,
    },
    /// A kernel log without an OOM kill or GPU fault.
    QuietKernel {
        /// Lines.
        lines: u64,
    },
}

impl Log {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::ServedOn => "log.served_on",
            Self::ServedForAWhile { .. } => "log.served_for_a_while",
            Self::LongBeforeTheKill { .. } => "log.long_before_the_kill",
            Self::UpAfter(_) => "log.up_after",
            Self::Unrecognised => "log.unrecognised",
            Self::Doubt(_) => "log.doubt",
            Self::CutTraceback => "log.cut_traceback",
            Self::Fallback => "log.fallback",
            Self::OtherZone { .. } => "log.other_zone",
            Self::NoVramError { .. } => "log.no_vram_error",
            Self::NothingKnown { .. } => "log.nothing_known",
            Self::Unreadable(_) => "log.unreadable",
            Self::NoMemoryError { .. } => "log.no_memory_error",
            Self::QuietKernel { .. } => "log.quiet_kernel",
        }
    }
}
