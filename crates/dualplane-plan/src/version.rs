//! Engines and their versions, which decide the formulas.

use std::fmt;

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

/// A release, compared by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The newest vLLM whose arithmetic was read and measured against.
    pub const NEWEST_VLLM: Self = Self(0, 33, 0);

    /// The newest SGLang whose arithmetic was read.
    pub const NEWEST_SGLANG: Self = Self(0, 5, 23);

    /// The newest TensorRT-LLM whose arithmetic was read: the main branch of 2026, after 1.2.
    pub const NEWEST_TENSORRT_LLM: Self = Self(1, 3, 0);

    /// The newest release of an engine whose arithmetic was read; vLLM's for engines without such rules.
    #[must_use]
    pub const fn newest(engine: EngineKind) -> Self {
        match engine {
            EngineKind::Sglang => Self::NEWEST_SGLANG,
            EngineKind::TensorrtLlm => Self::NEWEST_TENSORRT_LLM,
            EngineKind::Vllm | EngineKind::Tgi | EngineKind::LlamaCpp => Self::NEWEST_VLLM,
        }
    }

    /// `0.11.2`, `v0.11.2-cu129`, `0.19.1rc1.dev3+gabc`: the leading numbers. `None` where there are not at least two.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches(['v', 'V']);
        let mut numbers = text.split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).take(6).collect();
            digits.parse::<u32>().ok()
        });
        let (major, minor) = (numbers.next()??, numbers.next()??);
        Some(Self(major, minor, numbers.next().flatten().unwrap_or(0)))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_tags_are_versions() {
        assert_eq!(Version::parse("v0.11.2-cu129"), Some(Version(0, 11, 2)));
        assert_eq!(Version::parse("0.20"), Some(Version(0, 20, 0)));
        assert_eq!(Version::parse("0.19.1rc1.dev3+gabc"), Some(Version(0, 19, 1)));
        assert_eq!(Version::parse("latest"), None);
        assert_eq!(Version::parse("2024-06-01"), None);
        assert!(Version(0, 9, 2) < Version(0, 20, 0));
    }
}
