//! Evidence: files of any supported kind become sources of lines and Kubernetes objects in our own words.
//!
//! Nothing here judges. What could not be read becomes a [`Gap`] with its reason; it is never a zero.

mod add;
mod forms;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod gpu;
mod host;
mod kube;
mod lines;
pub mod metrics;
mod recognise;
mod scrap;

pub(crate) use encoding::without_nuls;
pub use gpu::model as gpu_model;
use gpu::{smi, torch};
pub use host::model as host_model;
use host::{cgroup, machine, processes};
pub use kube::{Mount, UNIT_LABEL, VERDICT_REASON, in_group, invocation, map_of, mounts, of_spec};
use kube::{
    describe, describe_pod, inspect, kubelet, model as kube_model, revisions, scaling, split, status, tables,
};
pub use kube_model::{
    Condition, ConfigMapVariable, Container, ContainerKind, ContainerStatus, Event, Extent, Node, Pod, Probe,
    State, Termination, Volume,
};
pub(crate) use lines::parts;
pub(crate) use lines::prose::sentences;
use lines::{encoding, paste, prose, sifted, stream};
pub use lines::{framing, prefix};
use metrics::{exports, promql};
pub(crate) use recognise::is_document;
pub use recognise::{Kind, recognise};
pub use revisions::{Change, Rollout};
pub use scaling::{Autoscaler, DisruptionBudget};
pub use scrap::{Quote, QuotedLimit};
pub use sifted::{MAX_LINE, Sifted, fold, is_folded, unfold};
pub use split::by_pod;
pub(crate) use split::died;
pub use torch::TorchSummary;

use std::sync::Arc;

use crate::time::Stamp;

use serde::Serialize;

/// A file as the edge read it.
#[derive(Debug, Clone, Default)]
pub struct RawFile {
    /// Path relative to the target, with `/`.
    pub name: String,
    /// Content.
    pub bytes: Vec<u8>,
    /// Which lines the content holds, where the file was too large to hold all.
    pub sifted: Option<SiftedFrom>,
}

/// What a sifted file was.
#[derive(Debug, Clone, Default)]
pub struct SiftedFrom {
    /// The number of each kept line, from 1.
    pub numbers: Arc<[u64]>,
    /// Lines of the file.
    pub lines: u64,
    /// Finds that were dropped because others say the same.
    pub omitted: u64,
}

impl RawFile {
    /// A file that is held as a whole.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into(), sifted: None }
    }

    /// A file of which only some lines are held.
    #[must_use]
    pub fn sifted(name: impl Into<String>, sifted: Sifted) -> Self {
        let Sifted { text, numbers, lines, omitted } = sifted;
        Self { name: name.into(), bytes: text, sifted: Some(SiftedFrom { numbers, lines, omitted }) }
    }
}

/// Something that is missing, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Gap {
    /// What is missing, or which file could not be used.
    pub what: String,
    /// Why it matters or what went wrong.
    pub why: String,
    /// The command that would get it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Whose log a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The dead instance's log.
    Previous,
    /// The log of the instance that runs now.
    Current,
    /// The log of another pod or host of the same group.
    Peer,
    /// Not said by its name.
    #[default]
    Unsaid,
}

/// A text source that is scanned line by line.
#[derive(Debug, Clone, Default)]
pub struct LogSource {
    /// Path relative to the target.
    pub name: String,
    /// Whose log it is.
    pub role: Role,
    /// It is a kernel log as a whole.
    pub kernel: bool,
    /// What a tool put before each line.
    pub prefix: prefix::Prefix,
    /// The line of the file for each line of the content, where they differ (exports: order of time, several in a line).
    pub numbers: Option<Arc<[u64]>>,
    /// Lines are missing between the lines of the content: what a line opens does not reach over a gap.
    pub sifted: bool,
    /// Lines of the file, where lines are missing here.
    pub written: u64,
    /// Content; shared where several pods of one pile read the same log.
    pub bytes: Arc<[u8]>,
}

/// The container whose end was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Name of the container.
    pub container: String,
    /// Id of the instance that ended, without the runtime's prefix.
    pub container_id: Option<String>,
    /// How many instances came before it.
    pub restart: Option<u64>,
    /// When it ended, as the recorder saw it; `None` where only a process of it was killed.
    pub ended: Option<Stamp>,
}

/// Processes of a container, as the machine numbers them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    /// Their pids.
    pub pids: Vec<u64>,
    /// None were left out, and the container's own program was among them.
    pub whole: bool,
}

/// Everything that one incident's files hold.
#[derive(Debug, Default)]
pub struct Bundle {
    /// Text sources, rotated files in order.
    pub logs: Vec<LogSource>,
    /// Pods.
    pub pods: Vec<Pod>,
    /// Events.
    pub events: Vec<Event>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Metric samples.
    pub metrics: Vec<metrics::Sample>,
    /// Whose end this is the evidence of, as the manifest of an incident tells it.
    pub judged: Option<Judged>,
    /// UUIDs of the GPUs that the kubelet gave to the container, as the manifest of an incident tells them.
    pub given: Vec<String>,
    /// Processes of the container, where they were listed before it ended.
    pub processes: Option<Processes>,
    /// Printouts of GPU tools.
    pub gpus: Vec<gpu_model::GpuSnapshot>,
    /// Memory files of cgroups.
    pub cgroups: Vec<host_model::Cgroup>,
    /// The memory of machines.
    pub machines: Vec<host_model::HostMemory>,
    /// Rows of `kubectl top pod`.
    pub tops: Vec<host_model::TopRow>,
    /// Rows of `kubectl get hpa`.
    pub autoscalers: Vec<Autoscaler>,
    /// Rows of `kubectl get pdb`.
    pub disruption_budgets: Vec<DisruptionBudget>,
    /// Ledgers of PyTorch's allocator.
    pub summaries: Vec<TorchSummary>,
    /// Words of people that name a plane, where they wrote instead of pasting.
    pub quotes: Vec<Quote>,
    /// Memory limits that were pasted without the state of a container.
    pub limits: Vec<QuotedLimit>,
    /// What changed before the death.
    pub rollouts: Vec<Rollout>,
    /// Names of all files that were used, sorted.
    pub files: Vec<String>,
    /// What could not be used.
    pub gaps: Vec<Gap>,
    /// Pod templates of workloads; they stand in for pods where no file holds one.
    pub templates: Vec<Pod>,
    /// Pods as people paste them (described, inspected, a row of a table), the fuller forms first within one file;
    /// [`merge`] decides whether they stand for themselves.
    pub(crate) pasted: Vec<Pod>,
}

impl Bundle {
    /// The cards of all printouts of GPU tools, each with its printout.
    pub(crate) fn printed_gpus(&self) -> impl Iterator<Item = (&gpu_model::GpuSnapshot, &gpu_model::Gpu)> {
        self.gpus.iter().flat_map(|s| s.gpus.iter().map(move |g| (s, g)))
    }

    /// Records a gap.
    pub fn gap(&mut self, what: &str, why: &str, command: Option<&str>) {
        self.gaps.push(Gap {
            what: what.to_owned(),
            why: why.to_owned(),
            command: command.map(str::to_owned),
        });
    }
}
