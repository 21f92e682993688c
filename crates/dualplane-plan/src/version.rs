//! Engines and their versions, which decide the formulas.

use std::fmt;

use dualplane_base::Version;
use serde::Serialize;

/// A serving engine whose memory arithmetic is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// vLLM.
    #[default]
    Vllm,
    /// SGLang.
    Sglang,
    /// Hugging Face Text Generation Inference.
    Tgi,
    /// TensorRT-LLM (PyTorch backend).
    TensorrtLlm,
    /// llama.cpp and what embeds it.
    LlamaCpp,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Vllm, Self::Sglang, Self::Tgi, Self::TensorrtLlm, Self::LlamaCpp];

    /// The plan that an engine's head names.
    #[must_use]
    pub fn named(plan: &str) -> Option<Self> {
        let all = [Self::Vllm, Self::Sglang, Self::Tgi, Self::TensorrtLlm, Self::LlamaCpp];
        all.into_iter().find(|e| e.id() == plan)
    }

    /// The newest release whose arithmetic was read; vLLM's for engines without such rules.
    #[must_use]
    pub const fn newest(self) -> Version {
        match self {
            Self::Sglang => NEWEST_SGLANG,
            Self::TensorrtLlm => NEWEST_TENSORRT_LLM,
            Self::Vllm | Self::Tgi | Self::LlamaCpp => NEWEST_VLLM,
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Tgi => "tgi",
            Self::TensorrtLlm => "tensorrt-llm",
            Self::LlamaCpp => "llama-cpp",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Tgi => "TGI",
            Self::TensorrtLlm => "TensorRT-LLM",
            Self::LlamaCpp => "llama.cpp",
        })
    }
}

/// The newest vLLM whose arithmetic was read and measured against.
pub const NEWEST_VLLM: Version = Version(0, 33, 0);

/// The newest SGLang whose arithmetic was read.
pub const NEWEST_SGLANG: Version = Version(0, 5, 23);

/// The newest TensorRT-LLM whose arithmetic was read: the main branch of 2026, after 1.2.
pub const NEWEST_TENSORRT_LLM: Version = Version(1, 3, 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plan_has_a_name_that_heads_use() {
        for e in ["vllm", "sglang", "tgi", "tensorrt-llm", "llama-cpp"] {
            assert_eq!(EngineKind::named(e).map(EngineKind::id), Some(e));
        }
        let heads = dualplane_engines::Engines::embedded();
        assert!(heads.iter().filter_map(|d| d.plan.as_deref()).all(|p| EngineKind::named(p).is_some()));
        assert_eq!(EngineKind::named("tei"), None);
    }
}
