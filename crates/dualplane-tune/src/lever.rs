//! The eleven levers, each with what it moves and what it risks on both planes.

use serde::{Deserialize, Serialize};

/// A lever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lever {
    /// The server puts requests together (Triton: `dynamic_batching`).
    DynamicBatching,
    /// Sizes of batches that the model runs best with (Triton: `preferred_batch_size`).
    PreferredSizes,
    /// How long a request waits for others (Triton: `max_queue_delay_microseconds`).
    QueueDelay,
    /// Copies of the model (Triton: `instance_group`; others: data parallel ranks, replicas).
    InstanceCount,
    /// Requests that are computed at the same time, and tokens of one step (vLLM: `--max-num-seqs`).
    InFlightBatching,
    /// A compiled engine.
    TensorRt,
    /// Fewer bits of weights or of the KV cache.
    Precision,
    /// How inputs reach the server: gRPC, shared memory.
    Transport,
    /// Tokenizing, images and audio elsewhere, or on more processors.
    CpuPreprocessing,
    /// What stays in memory and is warm: the KV cache's size, preloaded models.
    Residency,
    /// Long or large requests in a deployment of their own.
    SeparateDeployments,
}

impl Lever {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 11] = [
        Self::DynamicBatching,
        Self::PreferredSizes,
        Self::QueueDelay,
        Self::InstanceCount,
        Self::InFlightBatching,
        Self::TensorRt,
        Self::Precision,
        Self::Transport,
        Self::CpuPreprocessing,
        Self::Residency,
        Self::SeparateDeployments,
    ];

    /// Its name.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::DynamicBatching => "dynamic batching",
            Self::PreferredSizes => "preferred batch sizes",
            Self::QueueDelay => "queue delay",
            Self::InstanceCount => "instance count",
            Self::InFlightBatching => "in-flight batching",
            Self::TensorRt => "a compiled engine",
            Self::Precision => "precision",
            Self::Transport => "gRPC and shared memory",
            Self::CpuPreprocessing => "preprocessing on the CPU",
            Self::Residency => "warm-up and residency",
            Self::SeparateDeployments => "separate deployments",
        }
    }

    /// What more of it risks in host RAM.
    #[must_use]
    pub const fn risks_host(self) -> &'static str {
        match self {
            Self::DynamicBatching | Self::PreferredSizes | Self::QueueDelay => {
                "inputs of all requests that wait for a batch are held in host RAM"
            }
            Self::InstanceCount => "each copy has its own runtime and pinned buffers in host RAM",
            Self::InFlightBatching => {
                "buffers for inputs, outputs and swapped blocks of every further request"
            }
            Self::TensorRt => "building an engine takes several times its weights in host RAM",
            Self::Precision => "weights may be converted in host RAM while they load",
            Self::Transport => "/dev/shm counts against the container's memory limit",
            Self::CpuPreprocessing => {
                "each further process takes its runtime and tokenizer, and images in flight"
            }
            Self::Residency => {
                "what is preloaded or offloaded stays in host RAM; on a CPU engine the KV cache itself does"
            }
            Self::SeparateDeployments => "a second copy of everything that a server holds",
        }
    }

    /// What more of it risks in VRAM.
    #[must_use]
    pub const fn risks_vram(self) -> &'static str {
        match self {
            Self::DynamicBatching | Self::PreferredSizes => "activations grow with the batch",
            Self::QueueDelay => "none by itself; fuller batches take more activations",
            Self::InstanceCount => "each copy has its own weights and context on the card",
            Self::InFlightBatching => {
                "more of the KV cache is used: preemptions, or an OOM where it is not reserved; graphs and activations grow"
            }
            Self::TensorRt => "profiles for larger shapes reserve more activations",
            Self::Precision => "takes less; kernels may need workspaces",
            Self::Transport => "CUDA shared memory of clients stays on the card",
            Self::CpuPreprocessing => "none",
            Self::Residency => "a larger KV cache leaves less for activations, graphs and neighbours",
            Self::SeparateDeployments => "a second copy of the weights",
        }
    }
}
