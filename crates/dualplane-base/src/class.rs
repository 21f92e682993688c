//! The stable words of a verdict: classes, planes, phases, confidence.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable id.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// What killed or hurt the workload. Ids are stable and never reused.
    Class {
        /// The kernel killed a process because its container (or pod) reached its host RAM limit.
        HostOomKilled = "host_oom_killed",
        /// The whole node ran out of host RAM: global OOM kill, memory eviction, systemd-oomd, Ray's monitor.
        HostNodeOom = "host_node_oom",
        /// A host allocation was refused without a kill: pinned memory, /dev/shm, overcommit, an engine's own check.
        HostAllocFailure = "host_alloc_failure",
        /// VRAM ran out while loading, profiling or capturing graphs.
        CudaOomLoad = "cuda_oom_load",
        /// VRAM ran out while serving.
        CudaOomRuntime = "cuda_oom_runtime",
        /// The KV cache cannot hold what was asked; no allocation failed.
        KvCacheCapacity = "kv_cache_capacity",
        /// Enough VRAM was reserved but not in one piece.
        Fragmentation = "fragmentation",
        /// Somebody else holds the VRAM.
        GpuCapacityConflict = "gpu_capacity_conflict",
        /// The MIG instance is too small for the model.
        MigSliceTooSmall = "mig_slice_too_small",
        /// The GPU, its memory, bus or driver reported a fault.
        XidHardware = "xid_hardware",
        /// Something else ended it, or nothing is wrong.
        NotMemory = "not_memory",
        /// The evidence does not decide.
        Unknown = "unknown",
    }
}

words! {
    /// Which memory plane failed.
    Plane {
        /// Host RAM, /dev/shm, pinned memory.
        Host = "host",
        /// VRAM and the KV cache in it.
        Gpu = "gpu",
        /// Neither: a fault.
        Hardware = "hardware",
        /// No memory plane failed, or unknown.
        None = "none",
    }
}

words! {
    /// What the server was doing.
    Phase {
        /// Reading and placing weights, initialising devices.
        Load = "load",
        /// Profiling, sizing the KV cache, warm-up, graph capture.
        Profile = "profile",
        /// Serving requests.
        Traffic = "traffic",
        /// Up without requests.
        Idle = "idle",
        /// The evidence does not say.
        Unknown = "unknown",
    }
}

words! {
    /// How sure the verdict is.
    Confidence {
        /// One source guesses, or sources disagree.
        Low = "low",
        /// One good source, or a rule of thumb on good numbers.
        Medium = "medium",
        /// The source is the one that decides this class.
        High = "high",
    }
}

impl Class {
    /// The plane of this class.
    #[must_use]
    pub fn plane(self) -> Plane {
        match self {
            Self::HostOomKilled | Self::HostNodeOom | Self::HostAllocFailure => Plane::Host,
            Self::CudaOomLoad
            | Self::CudaOomRuntime
            | Self::KvCacheCapacity
            | Self::Fragmentation
            | Self::GpuCapacityConflict
            | Self::MigSliceTooSmall => Plane::Gpu,
            Self::XidHardware => Plane::Hardware,
            Self::NotMemory | Self::Unknown => Plane::None,
        }
    }

    /// What decides for this class, in words.
    #[must_use]
    pub fn decided_by(self) -> &'static str {
        match self {
            Self::HostOomKilled => {
                "the kernel's OOM-killer record with a memory cgroup as its scope, the reason OOMKilled on a container with a limit, containerd's TaskOOM event, \"container init was OOM-killed\", or the cgroup's own counters oom and oom_kill"
            }
            Self::HostNodeOom => {
                "an OOM-killer record of the whole node (CONSTRAINT_NONE, global_oom) or of all pods together, a memory eviction, systemd-oomd, earlyoom, Talos' controller, or Ray's memory monitor"
            }
            Self::HostAllocFailure => {
                "a failed host allocation without a kill: /dev/shm full (ENOSPC, SIGBUS), a pinned buffer \
                that the driver could not allocate, an engine's own RAM check, malloc"
            }
            Self::CudaOomLoad => {
                "a VRAM allocation error while loading, profiling or capturing graphs, while this process \
                uses most of the GPU"
            }
            Self::CudaOomRuntime => {
                "a VRAM allocation error while serving, while this process uses most of the GPU"
            }
            Self::KvCacheCapacity => {
                "a message from the engine that its KV cache is too small: refusal to start, preemption, \
                retraction, no free blocks; no allocation failed"
            }
            Self::Fragmentation => {
                "this process has reserved but unallocated memory of at least the requested size (or \
                together with free memory, if it is a tenth of the GPU), while tensors use less than 95 % \
                of the GPU"
            }
            Self::GpuCapacityConflict => {
                "other processes use at least 15 % of the GPU and the request would fit without them, or \
                the engine found less free memory at start than its configured share"
            }
            Self::MigSliceTooSmall => {
                "a VRAM error on a MIG instance that this process fills, or the allocator's NVML \
                assertion on a MIG instance"
            }
            Self::XidHardware => {
                "an Xid other than a clean-up or information, a GPU lost from the bus, an uncorrectable \
                ECC error, an illegal access or launch failure"
            }
            Self::NotMemory => {
                "the evidence shows another cause (probe, eviction for disk, crash, invalid flag, \
                timeout, client error), or nothing failed"
            }
            Self::Unknown => {
                "a process died and the evidence does not show why: SIGKILL without a kernel record, a \
                process that disappeared without an error message"
            }
        }
    }

    /// One line for a person who does not know the id.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::HostOomKilled => "the container was OOM-killed over its host RAM limit",
            Self::HostNodeOom => "the node ran out of host RAM",
            Self::HostAllocFailure => "a host memory allocation failed (no kernel kill)",
            Self::CudaOomLoad => "VRAM ran out while the model was loading",
            Self::CudaOomRuntime => "VRAM ran out while serving",
            Self::KvCacheCapacity => "the KV cache is too small for the requests",
            Self::Fragmentation => "VRAM is fragmented: enough is reserved, but not in one piece",
            Self::GpuCapacityConflict => "another process uses VRAM on this GPU",
            Self::MigSliceTooSmall => "the MIG slice is too small for this model",
            Self::XidHardware => "the GPU or its driver reported a fault",
            Self::NotMemory => "not a memory failure",
            Self::Unknown => "the evidence is not sufficient to decide",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_match_their_serialized_form() {
        for class in Class::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        }
        for phase in Phase::ALL {
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
        }
    }
}
