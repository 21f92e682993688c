//! What citations prove, as values: numbers, ids and quoted evidence, no sentences. Those are made in `dualplane-report`,
//! one function a domain.

mod busy;
mod cgroup;
mod gpu;
mod host_pool;
mod kernel;
mod launch;
mod log;
mod series;
mod signal;
mod snapshot;
mod status;
mod vram;
mod weighed;
mod xid;

pub use busy::{Busy, Untold};
pub use cgroup::{Cgroup, NoKill};
pub use gpu::{Fault, Gpu};
pub use host_pool::HostPool;
pub use kernel::Kernel;
pub use launch::Launch;
pub use log::Log;
pub use series::{Peak, Series, VramShare};
pub use signal::{SharedMemory, Signal};
pub use snapshot::Snapshot;
pub use status::Status;
pub use vram::{Enough, Vram};
pub use weighed::Weighed;
pub use xid::Xid;

use super::pressure::Reading;

/// What a citation proves.
#[derive(Debug, Clone, PartialEq)]
pub enum Proof {
    /// A line, an event or a status text that a signature knows.
    Line {
        /// Id of the signature.
        signature: String,
        /// The line, shortened.
        text: String,
    },
    /// A line that no signature knows.
    Quote(String),
    /// The kernel's OOM killer.
    Kernel(Kernel),
    /// The GPU driver's events.
    Xid(Xid),
    /// What Kubernetes says of the pod.
    Status(Status),
    /// The signal that ended the process.
    Signal(Signal),
    /// Counters of a cgroup.
    Cgroup(Cgroup),
    /// Metrics, and both planes over time.
    Series(Series),
    /// What tools show of GPUs.
    Gpu(Gpu),
    /// Sizes of a VRAM error.
    Vram(Vram),
    /// What a log shows, and what it does not.
    Log(Log),
    /// Figures of one moment.
    Snapshot(Snapshot),
    /// A pool of host memory.
    HostPool(HostPool),
    /// What a launch asks for.
    Launch(Launch),
    /// How busy a server is.
    Busy(Busy),
    /// A plane at its limit.
    Pressure(Box<Reading>),
    /// How a class was weighed that is not the verdict.
    Weighed(Weighed),
}

impl Proof {
    /// Stable id of what is proved, for programs: sentences may be worded anew.
    #[must_use]
    pub fn id(&self) -> &'static str {
        match self {
            Self::Line { .. } => "line",
            Self::Quote(_) => "quote",
            Self::Pressure(_) => "pressure",
            Self::Kernel(p) => p.id(),
            Self::Xid(p) => p.id(),
            Self::Status(p) => p.id(),
            Self::Signal(p) => p.id(),
            Self::Cgroup(p) => p.id(),
            Self::Series(p) => p.id(),
            Self::Gpu(p) => p.id(),
            Self::Vram(p) => p.id(),
            Self::Log(p) => p.id(),
            Self::Snapshot(p) => p.id(),
            Self::HostPool(p) => p.id(),
            Self::Launch(p) => p.id(),
            Self::Busy(p) => p.id(),
            Self::Weighed(p) => p.id(),
        }
    }

    /// Text of the evidence itself, where it is quoted.
    #[must_use]
    pub fn quoted(&self) -> Option<&str> {
        match self {
            Self::Line { text, .. } | Self::Quote(text) => Some(text),
            Self::Status(Status::ProbeKills { message, .. }) => Some(message),
            _ => None,
        }
    }

    /// The signature that knows the quoted line.
    #[must_use]
    pub fn signature(&self) -> Option<&str> {
        match self {
            Self::Line { signature, .. } => Some(signature),
            _ => None,
        }
    }

    /// One and the same line may be known to several signatures.
    pub(super) fn tells_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Line { text: a, .. } | Self::Quote(a), Self::Line { text: b, .. } | Self::Quote(b)) => {
                a == b
            }
            _ => self == other,
        }
    }
}

/// A domain's proof is a proof.
macro_rules! is_a_proof {
    ($($domain:ident),*) => {
        $(impl From<$domain> for Proof {
            fn from(value: $domain) -> Self {
                Self::$domain(value)
            }
        })*
    };
}

is_a_proof!(
    Kernel, Xid, Status, Signal, Cgroup, Series, Gpu, Vram, Log, Snapshot, HostPool, Weighed, Launch, Busy
);

impl From<Reading> for Proof {
    fn from(reading: Reading) -> Self {
        Self::Pressure(Box::new(reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Place;
    use crate::verdict::Cited;

    #[test]
    fn a_line_that_two_signatures_know_is_cited_once() {
        let place = |line| Place { file: "previous.log".into(), line: Some(line) };
        let line =
            |signature: &str, text: &str| Proof::Line { signature: signature.into(), text: text.into() };
        let first = Cited::at(line("a.one", "out of memory"), &place(1));
        assert_eq!(first, Cited::at(line("b.two", "out of memory"), &place(1)));
        assert_eq!(first, Cited::at(Proof::Quote("out of memory".into()), &place(1)));
        assert_ne!(first, Cited::at(line("a.one", "out of memory"), &place(2)));
        assert_ne!(first, Cited::at(line("a.one", "killed"), &place(1)));
    }

    /// Actions look for words in what is quoted: it is the evidence alone, without our own words around it.
    #[test]
    fn only_evidence_is_quoted() {
        let message = "Container vllm failed liveness probe, will be restarted";
        let kills = Status::ProbeKills { message: message.into(), count: 7, restarts: 9 };
        assert_eq!(Proof::from(kills).quoted(), Some(message));
        assert_eq!(Proof::from(Cgroup::OomKill(1)).quoted(), None);
    }
}
