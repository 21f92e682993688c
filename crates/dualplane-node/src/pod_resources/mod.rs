//! Which devices the kubelet gave to which container: its pod-resources API, gRPC on a socket of the node.
//!
//! Processes that hold VRAM tell who uses a GPU. Who was given one and does not use it, or not yet, only the kubelet knows:
//! a server that loads for minutes, one that died before it touched the card, one that sleeps on a card that others wait for.
//!
//! `message.rs` is the part of the API that is read, `client.rs` asks once, `thread.rs` does that beside the rounds.

mod client;
mod message;
mod thread;

pub use client::list;
pub use thread::{Answer, PodResources};

#[cfg(test)]
mod tests;

/// What a container was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDevices {
    /// Namespace.
    pub namespace: String,
    /// Pod. The API tells no UID: a name may have another owner by now.
    pub pod: String,
    /// Container.
    pub container: String,
    /// Its devices, by resource.
    pub devices: Vec<Device>,
}

/// Devices of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// `nvidia.com/gpu`; of a claimed device its driver, `gpu.nvidia.com`.
    pub resource: String,
    /// Ids as the device plugin made them; of a claimed device `DRIVER/POOL/DEVICE`, else its CDI name.
    pub ids: Vec<String>,
}

/// Why the kubelet did not tell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeletGap {
    /// No kubelet runs here, or its folder is not mounted into this container.
    #[error("{0} is not there: no kubelet, or its folder is not mounted")]
    NoSocket(String),
    /// Nobody listens, or somebody who speaks something else.
    #[error("the kubelet's pod-resources socket does not answer as it should: {0}")]
    Unreachable(String),
    /// It took the question and did not answer in time.
    #[error("the kubelet's pod-resources socket did not answer within {0} s")]
    Silent(u64),
    /// It is older than Kubernetes 1.20.
    #[error("the kubelet has no pod-resources API of version 1")]
    NoV1,
    /// It refused.
    #[error("the kubelet refused to list pod resources: {0}")]
    Refused(String),
    /// More than is taken.
    #[error("the kubelet's list of pod resources is larger than {0} MiB")]
    TooLarge(usize),
}
