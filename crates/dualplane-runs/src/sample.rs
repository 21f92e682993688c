//! What is read of both planes at a moment, and what became of a request.

/// Host RAM of the server by kind, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Host {
    /// All that is charged.
    pub current: Option<u64>,
    /// Less page cache that is not used.
    pub working_set: Option<u64>,
    /// Anonymous memory.
    pub anon: Option<u64>,
    /// tmpfs, shared and pinned memory.
    pub shmem: Option<u64>,
    /// Page cache, tmpfs with it.
    pub file: Option<u64>,
    /// Locked.
    pub pinned: Option<u64>,
    /// The kernel's own.
    pub kernel: Option<u64>,
    /// The limit.
    pub limit: Option<u64>,
    /// The most that the kernel ever counted, page cache with it.
    pub peak: Option<u64>,
}

impl Host {
    /// What the kernel cannot take back, and whether it is that (else the working set).
    #[must_use]
    pub fn held(&self) -> Option<(u64, bool)> {
        match (self.anon, self.shmem) {
            (Some(anon), Some(shmem)) => Some((anon.saturating_add(shmem), true)),
            _ => self.working_set.map(|w| (w, false)),
        }
    }
}

/// Both planes and the engine at one moment; `None` where it was not read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Seconds on the run's clock.
    pub at: f64,
    /// Host RAM.
    pub host: Option<Host>,
    /// VRAM in use, of all cards that the server has.
    pub vram: Option<u64>,
    /// Of how much.
    pub vram_total: Option<u64>,
    /// How busy the cards are, 0 to 1.
    pub gpu: Option<f64>,
    /// Power of all cards.
    pub watts: Option<f64>,
    /// Used share of the KV cache.
    pub kv: Option<f64>,
    /// Requests that run.
    pub running: Option<f64>,
    /// Requests that wait.
    pub waiting: Option<f64>,
    /// Preemptions since the engine started.
    pub preemptions: Option<f64>,
    /// Processor time of the server since it started, seconds.
    pub cpu_seconds: Option<f64>,
    /// Tokens of prompts that the prefix cache was asked for, and those that it had, since the engine started.
    pub prefix: Option<(f64, f64)>,
    /// Requests sent since the start, for the rate over time.
    pub sent: Option<f64>,
}

/// What cards told of errors of theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Xids that were told since this was last read.
    pub xids: Vec<u32>,
    /// Memory errors that were corrected, of all cards, by their counters.
    pub ecc_corrected: Option<u64>,
    /// Those that were not.
    pub ecc_uncorrected: Option<u64>,
    /// Rows of memory that were replaced.
    pub remapped: Option<u64>,
}

/// A process of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Pid, by which it is told apart.
    pub pid: u32,
    /// Name.
    pub name: String,
    /// Resident.
    pub resident: Option<u64>,
    /// Of it, anonymous.
    pub anon: Option<u64>,
    /// VRAM.
    pub vram: Option<u64>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Answered in full.
    Done,
    /// Cancelled on purpose.
    Cancelled,
    /// Still under way when the run ended.
    Open,
    /// Failed, for one of few reasons.
    Failed(&'static str),
    /// Refused or failed with a status.
    Status(u16),
}

/// What became of a request. Seconds on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// When it was due.
    pub due: f64,
    /// When it was sent.
    pub sent: f64,
    /// When its first token came.
    pub first: Option<f64>,
    /// When its last token came, or it failed.
    pub end: f64,
    /// Tokens of its prompt, as the server counted them, else as they were asked for.
    pub input: u64,
    /// Tokens of its answer.
    pub output: u64,
    /// How it ended.
    pub state: State,
}

impl Outcome {
    /// Seconds to the first token.
    #[must_use]
    pub fn ttft(&self) -> Option<f64> {
        Some((self.first? - self.sent).max(0.0))
    }

    /// Mean seconds between two tokens.
    #[must_use]
    pub fn itl(&self) -> Option<f64> {
        let gaps = self.output.checked_sub(1).filter(|n| *n > 0)?;
        Some((self.end - self.first?).max(0.0) / gaps as f64)
    }

    /// Seconds of all of it.
    #[must_use]
    pub fn whole(&self) -> f64 {
        (self.end - self.sent).max(0.0)
    }
}
