//! Memory of one moment, as tools and files show it.

use crate::units::Bytes;

/// What a snapshot proves.
#[derive(Debug, Clone, PartialEq)]
pub enum Snapshot {
    /// A tool's list of GPUs.
    Gpus {
        /// Tool.
        tool: &'static str,
        /// Cards.
        gpus: usize,
        /// MIG instances.
        instances: usize,
        /// Processes.
        processes: usize,
    },
    /// So many samples, and none shows a failure.
    Samples(usize),
    /// A cgroup's files, with its count of kills.
    Cgroup {
        /// OOM kills.
        kills: Option<u64>,
    },
    /// Memory of a machine, by this tool.
    Machine(&'static str),
    /// A pod's working set.
    WorkingSet {
        /// Tool.
        tool: &'static str,
        /// Pod.
        pod: String,
        /// Working set.
        used: Bytes,
    },
    /// A pod's working set near its limit, at a time that is not known.
    NearLimit {
        /// Tool.
        tool: &'static str,
        /// Working set.
        used: Bytes,
        /// Limit.
        limit: Bytes,
    },
    /// PyTorch's summary.
    Torch {
        /// Device.
        device: u32,
        /// Allocations that failed.
        failed: u64,
    },
    /// Memory that was available on the machine.
    Available {
        /// Tool.
        tool: &'static str,
        /// Available.
        available: Bytes,
        /// Of so much.
        total: Bytes,
        /// The killed process had released its memory by then.
        released: bool,
    },
    /// Use of a node.
    NodeUse {
        /// Tool.
        tool: &'static str,
        /// Node.
        node: Option<String>,
        /// Percent of what can be allocated.
        percent: u64,
        /// Used.
        used: Bytes,
    },
}

impl Snapshot {
    /// Stable id.
    pub(super) fn id(&self) -> &'static str {
        match self {
            Self::Gpus { .. } => "snapshot.gpus",
            Self::Samples(_) => "snapshot.samples",
            Self::Cgroup { .. } => "snapshot.cgroup",
            Self::Machine(_) => "snapshot.machine",
            Self::WorkingSet { .. } => "snapshot.working_set",
            Self::NearLimit { .. } => "snapshot.near_limit",
            Self::Torch { .. } => "snapshot.torch",
            Self::Available { .. } => "snapshot.available",
            Self::NodeUse { .. } => "snapshot.node_use",
        }
    }
}
