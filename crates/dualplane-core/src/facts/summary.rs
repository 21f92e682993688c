//! What one log shows as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Mig;
use crate::evidence::{LogSource, Role};
use crate::time::Stamp;
use dualplane_base::Phase;

/// What one log shows as a whole.
#[derive(Debug, Clone)]
pub struct LogSummary {
    /// File.
    pub file: String,
    /// Whose log.
    pub role: Role,
    /// A kernel log.
    pub kernel: bool,
    /// Number of lines that were read.
    pub lines: u64,
    /// Of a log that was too large to hold: all its lines, and the number of each that was read.
    pub sifted: Option<(u64, Arc<[u64]>)>,
    /// First and last time stamp.
    pub first: Option<Stamp>,
    /// Last time stamp.
    pub last: Option<Stamp>,
    /// Phase at the end.
    pub phase: Phase,
    /// Line of the last sign of served traffic.
    pub last_served: Option<u64>,
    /// Time of it.
    pub last_served_at: Option<Stamp>,
    /// Line at which the server said last that it is up, or served.
    pub last_ready: Option<u64>,
    /// Line at which an earlier run of the server ended in order.
    pub run_ended: Option<u64>,
    /// Line at which each process last spoke as one that works, behind the first fatal error.
    pub spoke: BTreeMap<String, u64>,
    /// Line of the last answer with a 5xx status.
    pub last_5xx: Option<u64>,
    /// The last line that tells of a violent end and that no signature knows.
    pub alarm: Option<(u64, String)>,
    /// The last line in which a user's text quotes an error, and that line.
    pub quoted_error: Option<(u64, String)>,
    /// The last line that is not empty, and its number.
    pub last_line: Option<(u64, String)>,
    /// The first frame of a traceback whose error is missing, and that line.
    pub cut_trace: Option<(u64, String)>,
    /// GPUs that it lists: PCI address, UUID where printed, line.
    pub gpus: Vec<(String, Option<String>, u64)>,
    /// Its stamps were in local time and have been moved by this, in milliseconds.
    pub zone_ms: Option<i64>,
    /// Xid lines beyond the bounds of one file.
    pub dropped_xids: u64,
    /// A MIG instance that the log shows.
    pub mig: Option<Mig>,
}

impl LogSummary {
    /// How many lines the log has, read or looked through.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.sifted.as_ref().map_or(self.lines, |(total, _)| *total)
    }

    /// How many lines stand behind the one that was read as number `line`.
    #[must_use]
    pub fn behind(&self, line: u64) -> u64 {
        let of_file = self
            .sifted
            .as_ref()
            .and_then(|(_, numbers)| numbers.get(usize::try_from(line.checked_sub(1)?).ok()?).copied());
        self.total().saturating_sub(of_file.unwrap_or(line))
    }

    /// Of a log that is not read yet.
    pub(super) fn of(log: &LogSource) -> Self {
        Self {
            file: log.name.clone(),
            role: log.role,
            kernel: log.kernel,
            lines: 0,
            sifted: log.numbers.clone().filter(|_| log.sifted).map(|numbers| (log.written, numbers)),
            first: None,
            last: None,
            phase: Phase::Unknown,
            last_served: None,
            last_served_at: None,
            last_ready: None,
            run_ended: None,
            spoke: BTreeMap::new(),
            last_5xx: None,
            alarm: None,
            quoted_error: None,
            last_line: None,
            cut_trace: None,
            gpus: Vec::new(),
            zone_ms: None,
            dropped_xids: 0,
            mig: None,
        }
    }
}
