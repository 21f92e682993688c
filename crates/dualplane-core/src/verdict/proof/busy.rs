//! How busy a server is, from metrics over a time.

/// What figures of load prove.
#[derive(Debug, Clone, PartialEq)]
pub enum Busy {
    /// Mean use of the busiest card, of 1.
    Use {
        /// Card.
        gpu: String,
        /// Mean.
        mean: f64,
        /// Samples.
        samples: usize,
    },
    /// Requests that wait, at the first and at the last sample.
    Queue {
        /// First.
        first: f64,
        /// Last.
        last: f64,
    },
    /// Mean time to the first token in seconds, in the first and in the second half of the time.
    FirstToken {
        /// First half, where there are two.
        before: Option<f64>,
        /// Second half.
        after: f64,
    },
    /// Tokens generated in a second, in the first and in the second half.
    Generated {
        /// First half.
        before: f64,
        /// Second half.
        after: f64,
    },
    /// Requests that failed in this time, by this counter.
    Failed {
        /// Counter.
        name: String,
        /// How many.
        count: f64,
    },
    /// Share of the periods in which the kernel held back the container's CPUs.
    Throttled(f64),
    /// Share of the time in which processes of the container waited for storage.
    Storage(f64),
    /// Packets of the pod that were dropped.
    Dropped(f64),
    /// As many requests run as the launch allows.
    Admitted {
        /// Running.
        running: f64,
        /// Allowed.
        most: f64,
    },
    /// What is not told and would decide.
    Untold(Untold),
}

/// A figure that would decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Untold {
    /// Use of the card.
    Use,
    /// Whether requests fail.
    Errors,
    /// Whether the tokens of a second hold.
    Throughput,
    /// What the host does: CPU, storage, network.
    Host,
}

impl Busy {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Use { .. } => "busy.use",
            Self::Queue { .. } => "busy.queue",
            Self::FirstToken { .. } => "busy.first_token",
            Self::Generated { .. } => "busy.generated",
            Self::Failed { .. } => "busy.failed",
            Self::Throttled(_) => "busy.throttled",
            Self::Storage(_) => "busy.storage",
            Self::Dropped(_) => "busy.dropped",
            Self::Admitted { .. } => "busy.admitted",
            Self::Untold(_) => "busy.untold",
        }
    }
}
