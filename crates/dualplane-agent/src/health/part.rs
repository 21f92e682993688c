//! What of the agent can fail, by the word that its log, `/healthz` and `/metrics` use.

use std::fmt;

/// Part of the agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The cgroups: who is there, and their host RAM.
    Cgroups,
    /// The state's folder.
    State,
    /// The ring of samples on the disk.
    Ring,
    /// The folder of incidents.
    Incidents,
    /// The API server: its address, its certificate, the credentials.
    ApiServer,
    /// What the API server lets the agent do.
    ApiRights,
    /// A sink, by its name.
    Sink(String),
    /// `/dev/kmsg`.
    KernelLog,
    /// NVML, where it answered before.
    Gpus,
    /// The kubelet's pod-resources API, where it answered before.
    PodResources,
    /// The process that judges bundles.
    Judge,
}

impl Part {
    /// Whether the agent is ready without it. What was never there (a kernel log without privileges, GPUs on a node
    /// without any) limits what a bundle holds and is no reason to call the pod not ready; neither is a verdict that comes
    /// later, of a bundle that is kept.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        match self {
            Self::Cgroups | Self::State | Self::Ring | Self::Incidents | Self::ApiServer | Self::Sink(_) => {
                true
            }
            Self::ApiRights | Self::KernelLog | Self::Gpus | Self::PodResources | Self::Judge => false,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroups => f.write_str("cgroups"),
            Self::State => f.write_str("state"),
            Self::Ring => f.write_str("ring"),
            Self::Incidents => f.write_str("incidents"),
            Self::ApiServer => f.write_str("api_server"),
            Self::ApiRights => f.write_str("api_rights"),
            Self::Sink(name) => write!(f, "sink:{name}"),
            Self::KernelLog => f.write_str("kernel_log"),
            Self::Gpus => f.write_str("gpus"),
            Self::PodResources => f.write_str("pod_resources"),
            Self::Judge => f.write_str("judge"),
        }
    }
}
