//! What Kubernetes says: container status, pod object, events, revisions.

use crate::evidence::{Change, Termination};
use crate::units::Bytes;

/// What the pod's object and events prove.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// The runtime saw an OOM kill in the container.
    OomKilled {
        /// Container.
        container: Option<String>,
        /// Exit code.
        exit_code: Option<i64>,
    },
    /// The exit code is not that of a SIGKILL.
    OtherExitCode(i64),
    /// Letters of the status had to be guessed.
    Blurred,
    /// No container of the pod has a memory limit.
    NoMemoryLimit,
    /// The container's memory limit.
    MemoryLimit(Bytes),
    /// The node has a SystemOOM event.
    SystemOom,
    /// An OOM kill in the container's life that did not end it.
    EarlierOomKill,
    /// The status cannot exclude an OOM kill that the runtime missed.
    MayMissOomKill,
    /// Exit code and reason.
    Ended(Box<Termination>),
    /// Exit code and reason, of an end that follows an engine's failure as well.
    EndedAsAfterFailure(Box<Termination>),
    /// Exit code and reason, where a kill would have left OOMKilled.
    EndedOtherwise(Box<Termination>),
    /// The same of a container that the verdict is not about.
    EndedNotOomKilled(Box<Termination>),
    /// An API server ends with code 0 after its engine failed, too.
    CleanAfterFailure,
    /// The container runs and never ended.
    Ready,
    /// It waits for its next start, for this reason, and the end before is not told.
    WaitsForRestart(String),
    /// It was started so often, and the end before is not told.
    Restarted(u64),
    /// A probe killed it again and again.
    ProbeKills {
        /// Message of the event.
        message: String,
        /// How often.
        count: u64,
        /// Of so many restarts.
        restarts: u64,
    },
    /// No event is close to the last end.
    NoEventNearEnd,
    /// Somebody deleted the pod.
    Deleted,
    /// The condition DisruptionTarget.
    Disruption {
        /// Reason.
        reason: String,
        /// Message.
        message: String,
    },
    /// A volume that is memory.
    MemoryVolume {
        /// Where it is mounted.
        path: String,
        /// Its size limit.
        size: Option<Bytes>,
    },
    /// The pod requests a time-sliced GPU of this name.
    SharedGpu(String),
    /// A roll-out changed a field.
    Changed {
        /// The pod's revision.
        revision: i64,
        /// The field.
        change: Change,
    },
    /// The pod's object would say whose a record is.
    ObjectWouldTell,
    /// No status, event or log confirms what a message says.
    Unconfirmed,
}

impl Status {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::OomKilled { .. } => "status.oom_killed",
            Self::OtherExitCode(_) => "status.other_exit_code",
            Self::Blurred => "status.blurred",
            Self::NoMemoryLimit => "status.no_memory_limit",
            Self::MemoryLimit(_) => "status.memory_limit",
            Self::SystemOom => "status.system_oom",
            Self::EarlierOomKill => "status.earlier_oom_kill",
            Self::MayMissOomKill => "status.may_miss_oom_kill",
            Self::Ended(_) => "status.ended",
            Self::EndedAsAfterFailure(_) => "status.ended_as_after_failure",
            Self::EndedOtherwise(_) => "status.ended_otherwise",
            Self::EndedNotOomKilled(_) => "status.ended_not_oom_killed",
            Self::CleanAfterFailure => "status.clean_after_failure",
            Self::Ready => "status.ready",
            Self::WaitsForRestart(_) => "status.waits_for_restart",
            Self::Restarted(_) => "status.restarted",
            Self::ProbeKills { .. } => "status.probe_kills",
            Self::NoEventNearEnd => "status.no_event_near_end",
            Self::Deleted => "status.deleted",
            Self::Disruption { .. } => "status.disruption",
            Self::MemoryVolume { .. } => "status.memory_volume",
            Self::SharedGpu(_) => "status.shared_gpu",
            Self::Changed { .. } => "status.changed",
            Self::ObjectWouldTell => "status.object_would_tell",
            Self::Unconfirmed => "status.unconfirmed",
        }
    }
}
