//! What a check before a start says.

use serde::Serialize;

use super::seen::{Driver, MemoryLimit, Pids, Shm};
use crate::{EngineKind, Quantity, Unknown, Verdict, Version};
use dualplane_base::units::Bytes;

/// What to do. Of several findings the last of this order decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It fits now.
    Go,
    /// It fits an empty machine, and somebody holds memory now.
    Wait,
    /// A fact that decides is missing, or lies within what is not known exactly.
    Unknown,
    /// It never fits here.
    CannotFit,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// VRAM.
    Gpu,
    /// Host RAM.
    Host,
    /// `/dev/shm`.
    Shm,
    /// Neither: the question itself.
    Launch,
}

/// A reason for an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it leads to.
    pub outcome: Outcome,
    /// What it is about.
    pub plane: Where,
    /// What is so.
    pub what: String,
    /// What to do about it.
    pub settle: Option<String>,
}

impl Finding {
    pub(super) fn new(outcome: Outcome, plane: Where, what: impl Into<String>) -> Self {
        Self { outcome, plane, what: what.into(), settle: None }
    }

    pub(super) fn settle(self, settle: impl Into<String>) -> Self {
        Self { settle: Some(settle.into()), ..self }
    }
}

/// A change with which it would fit, planned with the same arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Flags of the engine, fields of the pod, or a variable.
    pub change: String,
    /// What it leads to.
    pub because: String,
}

/// The launch that was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Model.
    pub model: String,
    /// Where its facts come from.
    pub model_source: String,
    /// Engine.
    pub engine: EngineKind,
    /// Its version.
    pub version: Version,
    /// The version was told, not assumed.
    pub version_known: bool,
    /// GPUs of this pod.
    pub gpus: u64,
    /// By which rule the engine looks at free memory.
    pub rule: String,
}

/// Memory on a card that no process explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Unexplained {
    /// So much.
    pub bytes: Bytes,
    /// What it is.
    pub kind: UnexplainedKind,
}

/// What unexplained memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnexplainedKind {
    /// All processes of the host can be seen and each tells its memory: a context outlived its process.
    Orphan,
    /// Processes of other containers cannot be seen from this pid namespace.
    NotVisible,
    /// Processes that do not tell their memory, or clients behind an MPS server.
    Unsure,
}

/// A process that holds memory, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What was seen.
    pub holder: super::seen::Holder,
    /// Its process is gone and its memory is not.
    pub orphan: bool,
}

/// One card or MIG device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuRow {
    /// Index of the card as the driver counts.
    pub index: u32,
    /// UUID.
    pub uuid: String,
    /// Name as the driver reports it.
    pub name: String,
    /// The card of the catalogue that the plan was made for.
    pub card: Option<String>,
    /// It is a MIG device.
    pub mig: bool,
    /// The launch takes it.
    pub taken: bool,
    /// What CUDA reports as the total.
    pub total: Option<Bytes>,
    /// Free now.
    pub free: Option<Bytes>,
    /// In use now.
    pub used: Option<Bytes>,
    /// What must be free.
    pub need: Option<Quantity>,
    /// Whether it starts on this card when it is empty.
    pub empty: Option<Verdict>,
    /// Whether it starts now.
    pub now: Option<Verdict>,
    /// What the engine would print now.
    pub message: Option<String>,
    /// Who holds it.
    pub holders: Vec<Held>,
    /// What nobody explains.
    pub unexplained: Option<Unexplained>,
    /// What follows.
    pub outcome: Outcome,
}

/// The host plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// RAM that the launch needs.
    pub need: Option<Quantity>,
    /// Shared memory of it.
    pub shm_need: Option<Quantity>,
    /// Memory limit.
    pub limit: MemoryLimit,
    /// All memory of the machine.
    pub machine_total: Option<Bytes>,
    /// Of it what a new process could get.
    pub machine_available: Option<Bytes>,
    /// `/dev/shm`.
    pub shm: Option<Shm>,
    /// Who told its size.
    pub shm_source: String,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preflight {
    /// What to do.
    pub outcome: Outcome,
    /// The launch; `None`: the machine alone was looked at.
    pub asked: Option<Asked>,
    /// GPUs that the server sees, those that it takes first.
    pub gpus: Vec<GpuRow>,
    /// How they were chosen.
    pub chosen_by: String,
    /// Driver.
    pub driver: Driver,
    /// Which pids can be looked at.
    pub pids: Pids,
    /// RAM.
    pub host: HostRow,
    /// Reasons, the heaviest first.
    pub findings: Vec<Finding>,
    /// What would make it fit.
    pub changes: Vec<Change>,
    /// What is not known and decides nothing here.
    pub unknown: Vec<Unknown>,
}

impl Preflight {
    /// The reason that decides, or that all is well.
    #[must_use]
    pub fn summary(&self) -> String {
        match self.findings.first() {
            Some(f) => f.what.clone(),
            None if self.asked.is_some() => "it fits, and no other process uses the memory it needs".into(),
            None => "no process uses GPU memory".into(),
        }
    }
}
