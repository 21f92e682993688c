//! What is shown at one moment, and the form of `-o json`: `dualplane.top/v1`. Sizes are bytes, shares 0 to 1; what is not
//! known is left out.

use serde::Serialize;

/// Version of the form.
pub(crate) const SCHEMA: &str = "dualplane.top/v1";

/// A moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Frame {
    pub(crate) schema: &'static str,
    /// RFC 3339.
    pub(crate) at: String,
    #[serde(skip)]
    pub(crate) ms: i64,
    pub(crate) node: Node,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) containers: Vec<Container>,
    /// The last verdicts of the agent, the newest first.
    pub(crate) incidents: Vec<Incident>,
    /// What could not be read, and what would help.
    pub(crate) gaps: Vec<String>,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shmem: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) swap_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) swap_used: Option<u64>,
    /// Share of the last 10 s in which all tasks waited for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pressure: Option<f64>,
    /// Processes that the OOM killer killed since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oom_kills: Option<u64>,
}

/// A card or a MIG device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Gpu {
    /// `0`, or `0.1` for the second MIG device of card 0.
    pub(crate) index: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uuid: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<u64>,
    /// Used, and not explained by the processes that the driver lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) other: Option<u64>,
    /// Percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) busy: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) celsius: Option<u32>,
    /// Clocks are low for a reason that is a fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) throttled: Option<bool>,
    pub(crate) holders: Vec<Holder>,
}

/// A process on a GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    /// Name of its container; none where it runs in none that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<u64>,
}

/// A container or a service.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Container {
    /// What stays the same from frame to frame: the path of its group, else its name.
    pub(crate) id: String,
    /// `namespace/pod/container`, else what is known.
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) working_set: Option<u64>,
    /// Page cache included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peak: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anon: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shmem: Option<u64>,
    /// Page cache without tmpfs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) swap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pressure: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) oom_kills: Option<u64>,
    /// Instances before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restarts: Option<u64>,
    /// Class of the agent's last verdict on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_class: Option<String>,
    pub(crate) vram: Vec<Vram>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<Engine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) processes: Vec<Process>,
}

/// VRAM of a container on one GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Vram {
    /// Index of the GPU.
    pub(crate) gpu: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
}

/// What an engine says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Engine {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kv_use: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preemptions: Option<f64>,
    /// Seconds since it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) age_s: Option<u64>,
}

/// A process of a container. Its command line is masked.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    pub(crate) command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anon: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shmem: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) swap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vram: Option<u64>,
}

/// A verdict of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Incident {
    pub(crate) at: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<String>,
}

impl Container {
    /// Working set over limit.
    pub(crate) fn share(&self) -> Option<f64> {
        Some(self.working_set? as f64 / self.limit.filter(|l| *l > 0)? as f64)
    }

    /// VRAM on all its GPUs.
    pub(crate) fn vram_used(&self) -> Option<u64> {
        self.vram.iter().filter_map(|v| v.used).reduce(u64::saturating_add)
    }

    /// VRAM over what its GPUs have.
    pub(crate) fn vram_share(&self) -> Option<f64> {
        let total = self.vram.iter().filter_map(|v| v.total).reduce(u64::saturating_add)?;
        Some(self.vram_used()? as f64 / total.max(1) as f64)
    }
}

impl Gpu {
    pub(crate) fn share(&self) -> Option<f64> {
        Some(self.used? as f64 / self.total.filter(|t| *t > 0)? as f64)
    }
}
