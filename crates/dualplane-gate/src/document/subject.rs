//! What was measured, on what, with which requests, and what counts as good.

use serde::{Deserialize, Serialize};

/// What wrote the document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// `dualplane`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The load tool that sent the requests where it was another one, with its version: `guidellm 0.8.0`.
    #[serde(default)]
    pub load_tool: Option<String>,
}

/// Which server was measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The engine's name: `vllm`.
    #[serde(default)]
    pub engine: Option<String>,
    /// Its version, as it says it.
    #[serde(default)]
    pub engine_version: Option<String>,
    /// The model's name or folder.
    #[serde(default)]
    pub model: Option<String>,
    /// Its revision, commit or digest.
    #[serde(default)]
    pub model_revision: Option<String>,
    /// The container image.
    #[serde(default)]
    pub image: Option<String>,
    /// Its digest.
    #[serde(default)]
    pub image_digest: Option<String>,
    /// The command line, split into words, without secrets.
    #[serde(default)]
    pub command: Vec<String>,
    /// Settings from the environment that the engine reads, `NAME=VALUE`, sorted, without secrets.
    #[serde(default)]
    pub environment: Vec<String>,
    /// The workload in a cluster: `serving/deploy/llm`.
    #[serde(default)]
    pub workload: Option<String>,
    /// A name that the user gave this build: a tag or a commit.
    #[serde(default)]
    pub build: Option<String>,
}

/// On what it ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// Cards that the server used; empty where it had none, none where it is not known.
    #[serde(default)]
    pub gpus: Option<Vec<Gpu>>,
    /// The driver's version.
    #[serde(default)]
    pub gpu_driver: Option<String>,
    /// The processor's name.
    #[serde(default)]
    pub cpu: Option<String>,
    /// Processors of the machine.
    #[serde(default)]
    pub cpus: Option<u32>,
    /// RAM of the machine.
    #[serde(default)]
    pub ram_bytes: Option<u64>,
    /// Memory limit of the container; none where it has none or it is not known.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// CPU limit of the container, in cores.
    #[serde(default)]
    pub cpu_limit: Option<f64>,
    /// Kernel release.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The node's name in a cluster.
    #[serde(default)]
    pub node: Option<String>,
}

/// One card.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// As the driver calls it: `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Its memory.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Its MIG profile: `3g.40gb`.
    #[serde(default)]
    pub mig: Option<String>,
}

/// The shape of the requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// A name for people.
    pub name: String,
    /// Where it came from: a file, `synthesised chat`, a load tool's own.
    #[serde(default)]
    pub source: Option<String>,
    /// `sha256:…` of the shape's file: two runs with the same digest sent the same requests.
    #[serde(default)]
    pub digest: Option<String>,
    /// Tokens of the longest input that it holds.
    #[serde(default)]
    pub longest_input_tokens: Option<u64>,
    /// Tokens of the longest output that it holds.
    #[serde(default)]
    pub longest_output_tokens: Option<u64>,
}

/// What counts as a good request. A bound that is none is not asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Most seconds until the first token.
    #[serde(default)]
    pub ttft_seconds: Option<f64>,
    /// Most seconds between two tokens, as the mean of a request.
    #[serde(default)]
    pub itl_seconds: Option<f64>,
    /// Most seconds of a whole request.
    #[serde(default)]
    pub e2e_seconds: Option<f64>,
}

/// What the hardware costs while it runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// An hour of all of it.
    pub per_hour: f64,
    /// `EUR`, `USD`.
    pub currency: String,
}

/// The most load that stayed within the SLO and the headroom, as a search found it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafeLoad {
    /// Requests at the same time.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// Requests a second.
    #[serde(default)]
    pub rate: Option<f64>,
    /// What the next higher load broke, in words.
    #[serde(default)]
    pub bounded_by: Option<String>,
}
