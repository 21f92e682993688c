//! Quantisation of weights: the method, and which layers it leaves alone.

use std::collections::HashMap;

use regex::Regex;
use serde::Serialize;

/// Method, as the engine names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantMethod {
    /// `fp8`: per tensor, per channel or in blocks.
    Fp8,
    /// `modelopt`: FP8 per tensor.
    Modelopt,
    /// `modelopt_fp4`.
    ModeloptFp4,
    /// `modelopt_mixed`: a scheme per layer.
    ModeloptMixed,
    /// `compressed-tensors`.
    CompressedTensors,
    /// `awq` and its kernels.
    Awq,
    /// `gptq` and its kernels.
    Gptq,
    /// `gpt_oss_mxfp4`: FP4 experts.
    GptOssMxfp4,
    /// `mxfp4`.
    Mxfp4,
    /// `deepseek_v4_fp8`: FP8 blocks with FP4 experts.
    DeepseekV4Fp8,
    /// `bitsandbytes`.
    Bitsandbytes,
}

impl QuantMethod {
    /// As the engine prints it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fp8 => "fp8",
            Self::Modelopt => "modelopt",
            Self::ModeloptFp4 => "modelopt_fp4",
            Self::ModeloptMixed => "modelopt_mixed",
            Self::CompressedTensors => "compressed-tensors",
            Self::Awq => "awq",
            Self::Gptq => "gptq",
            Self::GptOssMxfp4 => "gpt_oss_mxfp4",
            Self::Mxfp4 => "mxfp4",
            Self::DeepseekV4Fp8 => "deepseek_v4_fp8",
            Self::Bitsandbytes => "bitsandbytes",
        }
    }
}

/// How one linear is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinearScheme {
    /// As the model's dtype.
    Plain,
    /// FP8 with one scale per tensor, and one for inputs where static.
    Fp8Tensor {
        /// Scale of inputs stored.
        static_input: bool,
    },
    /// FP8 with one scale per output channel.
    Fp8Channel,
    /// FP8 with one scale per tile.
    Fp8Block {
        /// Rows of a tile.
        rows: u64,
        /// Columns of a tile.
        columns: u64,
    },
    /// INT8 with one scale per output channel.
    Int8Channel,
    /// Integers of few bits with a scale, and perhaps zero points, per group of inputs.
    IntGroup {
        /// Bits per weight.
        bits: u64,
        /// Inputs per group; 0: all.
        group: u64,
        /// Whether zero points stay on the GPU.
        zeros: bool,
        /// Whether the order of inputs is stored (`desc_act`).
        order: bool,
    },
    /// FP4 with an FP8 scale per so many inputs.
    Nvfp4 {
        /// Inputs per scale.
        group: u64,
    },
    /// FP4 with an 8-bit scale per 32 inputs.
    Mxfp4,
    /// 4 bits with a 32-bit scale per 64 weights (bitsandbytes).
    Nf4,
}

/// Quantisation of a checkpoint.
#[derive(Debug, Clone, Serialize)]
pub struct Quantization {
    /// Method.
    pub method: QuantMethod,
    /// Scheme of a linear that no rule names.
    pub default: LinearScheme,
    /// Scheme of routed experts that no rule names.
    pub experts: LinearScheme,
    /// Names and patterns of modules that stay as they are.
    #[serde(skip)]
    pub(crate) ignored: Patterns,
    /// Scheme by module name, where each has its own.
    #[serde(skip)]
    pub(crate) by_module: HashMap<String, LinearScheme>,
    /// Whether a head that no rule names is quantised as well.
    pub head: bool,
}

impl PartialEq for Quantization {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method && self.default == other.default && self.by_module == other.by_module
    }
}

/// What ModelOpt says of weights and cache in a place that only some engines read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aside {
    pub(crate) weights: Quantization,
    pub(crate) kv_dtype: Option<String>,
}

/// Names, wildcards and regular expressions, as quantisers write them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns {
    names: std::collections::HashSet<String>,
    wildcards: Vec<String>,
    regexes: Vec<Regex>,
}

/// More patterns than any checkpoint has.
const MAX_REGEXES: usize = 256;
/// As above; each is tried on each module.
const MAX_WILDCARDS: usize = 4096;

/// One spelling of a module's name for what models, checkpoints and quantisers call it.
pub(crate) fn canonical(name: &str) -> String {
    let name = name
        .strip_prefix("model.language_model.")
        .map(|r| format!("model.{r}"))
        .unwrap_or_else(|| name.into());
    let name = name.strip_prefix("language_model.model.").map(|r| format!("model.{r}")).unwrap_or(name);
    name.strip_prefix("language_model.").map(str::to_owned).unwrap_or(name)
}

impl Patterns {
    pub(crate) fn new<'a>(patterns: impl Iterator<Item = &'a str>) -> Self {
        let mut out = Self::default();
        for p in patterns {
            if let Some(re) = p.strip_prefix("re:") {
                // Python's `re.match` is anchored at the start only.
                if out.regexes.len() < MAX_REGEXES
                    && let Ok(re) = Regex::new(&format!("^(?:{re})"))
                {
                    out.regexes.push(re);
                }
            } else if p.contains('*') {
                if out.wildcards.len() < MAX_WILDCARDS {
                    out.wildcards.push(canonical(p));
                }
            } else {
                out.names.insert(canonical(p));
            }
        }
        out
    }

    /// Whether this module, or one that holds it, is named.
    pub(crate) fn matches(&self, module: &str) -> bool {
        let mut prefix = module;
        loop {
            if self.names.contains(prefix) {
                return true;
            }
            match prefix.rsplit_once('.') {
                Some((outer, _)) => prefix = outer,
                None => break,
            }
        }
        self.wildcards.iter().any(|w| wildcard(w.as_bytes(), module.as_bytes()))
            || self.regexes.iter().any(|r| r.is_match(module))
    }
}

/// Shell-like matching with `*` only, in time linear in the product of the lengths.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == text.get(t) {
            p += 1;
            t += 1;
        } else if let Some((sp, st)) = star {
            star = Some((sp, st + 1));
            p = sp + 1;
            t = st + 1;
        } else {
            return false;
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|b| *b == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_wildcards_and_regexes_match_modules() {
        let p = Patterns::new(
            ["lm_head", "model.language_model.layers.0.self_attn*", "re:.*shared_experts.*", "*.attn.*"]
                .into_iter(),
        );
        assert!(p.matches("lm_head"));
        assert!(p.matches("model.layers.0.self_attn.q_proj"));
        assert!(!p.matches("model.layers.10.self_attn.q_proj"));
        assert!(p.matches("model.layers.3.mlp.shared_experts.up_proj"));
        assert!(p.matches("layers.3.attn.wo_a"));
        assert!(!p.matches("model.layers.3.mlp.up_proj"));
        assert!(wildcard(b"a*c*e", b"abcde") && !wildcard(b"a*c*e", b"abcd"));
    }
}
