//! Quantisation of weights: the method and which layers it leaves alone.

use serde::Serialize;

/// Method, as the engine names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantMethod {
    /// `fp8`: per tensor, per channel or in blocks.
    Fp8,
    /// `modelopt`: FP8 per tensor.
    ModeloptFp8,
    /// `modelopt_fp4`.
    ModeloptFp4,
    /// `modelopt_mixed`: a method per layer.
    ModeloptMixed,
    /// `compressed-tensors`.
    CompressedTensors,
    /// `awq`.
    Awq,
    /// `gptq`.
    Gptq,
    /// `mxfp4` of gpt-oss.
    GptOssMxfp4,
    /// `mxfp4` on experts.
    Mxfp4,
    /// `deepseek_v4_fp8`: FP8 blocks with FP4 experts.
    DeepseekV4Fp8,
    /// `bitsandbytes`.
    Bitsandbytes,
    /// `gguf`.
    Gguf,
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
    /// FP4 with an FP8 scale per 16 inputs.
    Nvfp4,
    /// FP4 with an 8-bit scale per 32 inputs.
    Mxfp4,
    /// 4 bits with a 32-bit scale per 64 weights (bitsandbytes).
    Nf4,
}

/// Quantisation of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantization {
    /// Method.
    pub method: QuantMethod,
    /// Scheme of a linear that no rule names.
    pub default: LinearScheme,
    /// Names and patterns of modules that stay as they are.
    pub ignored: Vec<String>,
    /// Scheme by module name, where each has its own.
    pub by_module: Vec<(String, LinearScheme)>,
}
