//! Who made the card: each maker has tools of its own, and another's command fails on its nodes.

use super::Facts;
use crate::evidence::Bundle;

/// Maker of the GPU that an incident is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Maker {
    /// NVIDIA, and where nothing tells of another.
    #[default]
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
    /// Huawei's Ascend.
    Ascend,
    /// Intel's Gaudi, which has tools of its own.
    Gaudi,
}

/// What tells of a maker: its resource in a pod, a word of its images, words of its run time's errors.
struct Signs {
    maker: Maker,
    resources: &'static [&'static str],
    images: &'static [&'static str],
    errors: &'static [&'static str],
    tools: &'static [&'static str],
}

const SIGNS: &[Signs] = &[
    Signs {
        maker: Maker::Amd,
        resources: &["amd.com/"],
        images: &["rocm"],
        errors: &[
            "HIP out of memory",
            "HIP error",
            "hipError",
            "ROCm error",
            "amdgpu",
            "Memory access fault by GPU node",
            "HSA_STATUS_ERROR",
        ],
        tools: &["rocm-smi", "amd-smi"],
    },
    Signs {
        maker: Maker::Intel,
        resources: &["gpu.intel.com/"],
        images: &["-xpu", "xpu-", "intel-xpu", "ipex"],
        errors: &["XPU out of memory", "XPU error", "UR_RESULT_ERROR", "ZE_RESULT_ERROR"],
        tools: &["xpu-smi"],
    },
    Signs {
        maker: Maker::Ascend,
        resources: &["huawei.com/"],
        images: &["ascend", "-npu"],
        errors: &["NPU out of memory", "NPU error", "aclrt"],
        tools: &["npu-smi"],
    },
    Signs {
        maker: Maker::Gaudi,
        resources: &["habana.ai/"],
        images: &["gaudi", "habana"],
        errors: &["PT_DEVMEM", "synStatus", "PT_BRIDGE"],
        tools: &["hl-smi"],
    },
];

/// The maker, by the pod, then by what its run time prints, then by the tools whose output is at hand.
#[must_use]
pub(super) fn maker(bundle: &Bundle, facts: &Facts) -> Maker {
    let containers = || bundle.pods.iter().flat_map(|p| &p.containers);
    let mut resources = containers().flat_map(|c| &c.devices).map(|(name, _)| name.as_str());
    if resources.any(|r| r.starts_with("nvidia.com/")) {
        return Maker::Nvidia;
    }
    let any = |words: &[&str], text: &str| words.iter().any(|w| text.contains(w));
    let of = |s: &&Signs| {
        containers().flat_map(|c| &c.devices).any(|(name, _)| s.resources.iter().any(|r| name.starts_with(r)))
            || containers().any(|c| any(s.images, &c.image.to_ascii_lowercase()))
            || facts.hits.iter().any(|h| h.class.is_some() && any(s.errors, &h.text))
            || bundle.gpus.iter().any(|g| any(s.tools, g.tool))
    };
    SIGNS.iter().find(of).map(|s| s.maker).unwrap_or_default()
}

impl Maker {
    /// Its tool's name.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia-smi",
            Self::Amd => "amd-smi",
            Self::Intel => "xpu-smi",
            Self::Ascend => "npu-smi",
            Self::Gaudi => "hl-smi",
        }
    }

    /// Shows used and total VRAM of each card.
    #[must_use]
    pub fn memory(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia-smi --query-gpu=memory.used,memory.free,memory.total --format=csv",
            Self::Amd => "amd-smi metric --mem-usage",
            Self::Intel => "xpu-smi --query-gpu=memory.used,memory.free,memory.total --format=csv",
            Self::Ascend => "npu-smi info",
            Self::Gaudi => "hl-smi -Q memory.used,memory.free,memory.total -f csv",
        }
    }

    /// Shows used and total VRAM of each card with the time, as evidence to keep.
    #[must_use]
    pub fn usage(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv",
            Self::Amd | Self::Intel | Self::Ascend | Self::Gaudi => self.memory(),
        }
    }

    /// Shows used VRAM every ten seconds.
    #[must_use]
    pub fn follow(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia-smi --query-gpu=timestamp,memory.used,memory.total --format=csv -l 10",
            Self::Amd => "amd-smi metric --mem-usage --watch 10",
            Self::Intel => {
                "xpu-smi --query-gpu=timestamp,memory.used,memory.total --format=csv --loop-ms=10000"
            }
            Self::Ascend => "watch -n 10 npu-smi info",
            Self::Gaudi => "hl-smi -Q timestamp,memory.used,memory.total -f csv -l 10",
        }
    }

    /// Shows used VRAM again and again.
    #[must_use]
    pub fn watch(self) -> &'static str {
        match self {
            Self::Nvidia => {
                "nvidia-smi --query-gpu=timestamp,memory.used,memory.free,memory.total --format=csv -lms 200"
            }
            Self::Amd => "amd-smi metric --mem-usage --watch 1",
            Self::Intel => {
                "xpu-smi --query-gpu=timestamp,memory.used,memory.free,memory.total --format=csv --loop-ms=200"
            }
            Self::Ascend => "watch -n 1 npu-smi info",
            Self::Gaudi => "hl-smi -Q timestamp,memory.used,memory.free,memory.total -f csv -l 1",
        }
    }

    /// Lists the processes on the cards with what they hold.
    #[must_use]
    pub fn processes(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,name --format=csv",
            Self::Amd => "amd-smi process",
            Self::Intel => "xpu-smi ps",
            Self::Ascend => "npu-smi info",
            Self::Gaudi => "hl-smi",
        }
    }

    /// Shows the counters of memory errors.
    #[must_use]
    pub fn faults(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
            Self::Amd => "amd-smi metric --ecc",
            Self::Intel => "xpu-smi health -l",
            Self::Ascend => "npu-smi info",
            Self::Gaudi => "hl-smi -q -d ECC",
        }
    }

    /// Finds the driver's words in the kernel log.
    #[must_use]
    pub fn kernel_words(self) -> &'static str {
        match self {
            Self::Nvidia => "dmesg -T | grep -E 'NVRM|Xid'",
            Self::Amd => "dmesg -T | grep -E 'amdgpu|kfd'",
            Self::Intel => "dmesg -T | grep -E 'i915|xe '",
            Self::Ascend => "dmesg -T | grep -iE 'ascend|davinci|npu'",
            Self::Gaudi => "dmesg -T | grep -i habanalabs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Container, Pod};

    fn pod(image: &str, device: &str) -> Bundle {
        let c = Container {
            image: image.into(),
            devices: if device.is_empty() { Vec::new() } else { vec![(device.into(), 1)] },
            ..Container::default()
        };
        Bundle { pods: vec![Pod { containers: vec![c], ..Pod::default() }], ..Bundle::default() }
    }

    #[test]
    fn the_pod_tells_the_maker() {
        for (image, device, want) in [
            ("vllm/vllm-openai:v0.11.2", "nvidia.com/gpu", Maker::Nvidia),
            ("rocm/vllm:latest", "amd.com/gpu", Maker::Amd),
            ("rocm/vllm-dev:nightly", "", Maker::Amd),
            ("intel/vllm:0.10.2-xpu", "gpu.intel.com/xe", Maker::Intel),
            ("quay.io/ascend/vllm-ascend:v0.11.0", "huawei.com/Ascend910", Maker::Ascend),
            ("ghcr.io/huggingface/tgi-gaudi:2.3.1", "", Maker::Gaudi),
            ("vllm/vllm-openai:v0.11.2", "", Maker::Nvidia),
        ] {
            assert_eq!(maker(&pod(image, device), &Facts::default()), want, "{image} {device}");
        }
    }
}
