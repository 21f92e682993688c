//! What the recorder is given, why it cannot begin, and what it counts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use dualplane_core::knowledge::KnowledgeError;
use dualplane_node::gpu::Gpus;

use super::outside::{Cluster, Judge};
use crate::health::Health;
use crate::incident::StoreError;
use crate::observe;

/// Where things are.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is observed.
    pub observe: observe::Config,
    /// Folder of the ring, the incidents and the state.
    pub state: PathBuf,
    /// Bytes of all of it.
    pub disk: u64,
    /// `/dev/kmsg`.
    pub kmsg: PathBuf,
    /// Name of the node.
    pub node: String,
    /// `dualplane 0.1.0`.
    pub tool: String,
}

/// What the recorder is given.
pub struct Dependencies {
    /// GPUs.
    pub gpus: Box<dyn Gpus>,
    /// Who judges.
    pub judge: Box<dyn Judge>,
    /// The API server.
    pub cluster: Option<Box<dyn Cluster>>,
    /// Where faults are reported.
    pub health: Arc<Health>,
}

/// The recorder cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The state's folder cannot be used.
    #[error("{path}: {source}")]
    State {
        /// Folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The incidents' folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The knowledge is broken.
    #[error("the embedded knowledge is broken: {0}")]
    Knowledge(#[from] KnowledgeError),
    /// The boot has no name: moments could not be told from those of another boot.
    #[error("cannot read {0}: is /proc mounted?")]
    NoBoot(PathBuf),
    /// No thread can be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What happened since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Ends of containers that were noticed.
    pub ends: u64,
    /// Of them found at the start: they happened while no agent ran.
    pub ends_unseen: u64,
    /// Deaths of a loop that were counted only.
    pub skipped: u64,
    /// Ends for which no room was left in the queue.
    pub overrun: u64,
    /// Sandboxes and others without a name that ended.
    pub nameless: u64,
    /// Kills by the OOM killer, as counters of groups told.
    pub oom_kills: u64,
    /// Xids that the kernel told.
    pub xids: u64,
    /// Records of the kernel that were overwritten before they could be read.
    pub kernel_lost: u64,
    /// The kernel's messages cannot be read.
    pub no_kernel: bool,
    /// Rounds.
    pub rounds: u64,
    /// Nanoseconds that the last round took, with all that belongs to it.
    pub round_ns: u64,
}
