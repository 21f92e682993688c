//! A model as its own files describe it: layers by kind, sizes, quantisation. No model is known here by its name.

pub(crate) mod checks;
mod encoder;
pub(crate) mod family;
pub(crate) mod keys;
mod layer;
pub(crate) mod quant;
mod quant_read;
pub(crate) mod read;
mod recognise;
pub(crate) mod rotary;
mod tie;

pub use family::Family;
pub use layer::{
    Attention, CompressedMla, FeedForward, GatedDelta, Gqa, Indexer, Kda, Layer, Mamba1, Mamba2, Mla, Moe,
    QkNorm, Reach, ShortConv,
};
pub use quant::{LinearScheme, QuantMethod, Quantization};

use serde::Serialize;

use crate::quantity::Unknown;

/// Element type of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 16 bits, wide exponent.
    Bfloat16,
    /// 16 bits, IEEE.
    Float16,
    /// 32 bits.
    Float32,
    /// 8 bits.
    Fp8,
}

impl Dtype {
    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bfloat16 | Self::Float16 => 2,
            Self::Float32 => 4,
            Self::Fp8 => 1,
        }
    }

    /// `bfloat16`, `torch.float16`, `half`, `fp32`, ... `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().trim_start_matches("torch.") {
            "bfloat16" | "bf16" => Self::Bfloat16,
            "float16" | "half" | "fp16" => Self::Float16,
            "float32" | "float" | "fp32" => Self::Float32,
            "fp8" | "float8_e4m3fn" | "fp8_e4m3" | "fp8_e5m2" => Self::Fp8,
            _ => return None,
        })
    }

    /// As torch writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bfloat16 => "bfloat16",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Fp8 => "float8_e4m3fn",
        }
    }
}

/// The text that a model's folder holds, as far as it matters here. Read by the caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelFiles<'a> {
    /// `config.json`.
    pub config: &'a str,
    /// `hf_quant_config.json`.
    pub hf_quant_config: Option<&'a str>,
    /// `model.safetensors.index.json`.
    pub safetensors_index: Option<&'a str>,
}

/// An encoder of images, video or sound in front of the language model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Encoder {
    /// Tower as the config names it (`qwen3_vl`, `siglip_vision_model`).
    pub family: String,
    /// Layers.
    pub layers: u64,
    /// Width.
    pub hidden_size: u64,
    /// Width of its feed-forward.
    pub intermediate_size: u64,
    /// Heads.
    pub heads: u64,
    /// Width of what it hands to the language model.
    pub out_hidden_size: u64,
    /// The raw configuration of the tower, for what only its family has.
    #[serde(skip)]
    pub raw: serde_json::Value,
}

/// One table of rotary embeddings, kept once per distinct configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RotaryTable {
    /// Positions.
    pub positions: u64,
    /// Rotated elements per head.
    pub width: u64,
    /// Bytes per element; 0: those of the dtype that is served.
    pub element_bytes: u64,
    /// Tables of this kind.
    pub count: u64,
}

impl RotaryTable {
    /// Bytes: cosine and sine of half the rotated elements each, with elements of `served` bytes where none are given.
    #[must_use]
    pub const fn bytes(&self, served: u64) -> u64 {
        let element = if self.element_bytes == 0 { served } else { self.element_bytes };
        self.positions.saturating_mul(self.width).saturating_mul(element).saturating_mul(self.count)
    }
}

/// A model's facts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// First name in `architectures`.
    pub architecture: String,
    /// Which arithmetic the architecture stands for.
    pub family: Family,
    /// What only the name of its language model's architecture tells.
    #[serde(skip)]
    pub(crate) traits: &'static family::Traits,
    /// Why its arithmetic is an estimate, where it is one.
    pub estimated: Option<String>,
    /// How it is quantised is told by its name: the files of its publisher, which say what stays in 16 bits, were not read.
    pub quantized_by_name: bool,
    /// `model_type` of the language model.
    pub model_type: String,
    /// Width of the residual stream.
    pub hidden_size: u64,
    /// Rows of the embedding before padding.
    pub vocab_size: u64,
    /// Whether the output head is the input embedding.
    pub tied: bool,
    /// Dtype that the checkpoint declares.
    pub dtype: Dtype,
    /// Query heads of the whole model, which the engine divides among ranks.
    pub heads: u64,
    /// KV heads of the whole model.
    pub kv_heads: u64,
    /// Longest context that the engine derives from the config, in tokens.
    pub max_model_len: u64,
    /// Longest context that the engine lets a flag ask for; with LongRoPE longer than what it takes by itself.
    pub longest: u64,
    /// What releases of vLLM before 0.30.0 take for both, where the config stretches the context with YaRN.
    pub stretched: Option<u64>,
    /// `max_position_embeddings`.
    pub max_position: u64,
    /// Layers in order.
    pub layers: Vec<Layer>,
    /// Layers of the checkpoint's own multi-token prediction.
    pub mtp_layers: u64,
    /// The separate drafter that is served beside it, where its files were read.
    #[serde(skip)]
    pub drafter: Option<Box<Model>>,
    /// Encoder.
    pub encoder: Option<Encoder>,
    /// Encoder of sound.
    pub sound: Option<Encoder>,
    /// Tables of rotary embeddings.
    pub rotary: Vec<RotaryTable>,
    /// Quantisation of the weights.
    pub quantization: Option<Quantization>,
    /// KV dtype that the checkpoint's quantisation declares (`fp8_e4m3`).
    pub declared_kv_dtype: Option<String>,
    /// The same two where only some engines look.
    #[serde(skip)]
    pub(crate) aside: Option<quant::Aside>,
    /// Bytes of the tensors of the checkpoint, from the safetensors index.
    pub checkpoint_bytes: Option<u64>,
    /// Keys of config.json that nothing here reads, sorted.
    pub unknown_keys: Vec<String>,
    /// The language model's configuration, for what only its family has.
    #[serde(skip)]
    pub text: serde_json::Value,
    /// The whole configuration.
    #[serde(skip)]
    pub config: serde_json::Value,
    /// Keys of the configuration that the command line sets, which are read after its class has looked at the file.
    #[serde(skip)]
    pub overridden: Vec<String>,
}

/// How far weights may be off where a copy's name told its quantisation, as a share. A copy of a hybrid whose states stay
/// in 16 bits was 7.7 % heavier than another publisher's.
pub(crate) const NAMED_QUANTIZATION: f64 = 0.1;

impl Model {
    /// Takes what a name says of the quantisation for what its files say. Tools quantise every linear layer of a plain
    /// decoder but the head; what they leave of experts, encoders and states differs from one publisher to another.
    pub fn quantized_as_named(&mut self) {
        let plain = |l: &Layer| {
            matches!(l.attention, Attention::Gqa(_)) && !matches!(l.feed_forward, FeedForward::Moe(_))
        };
        let plain = self.encoder.is_none() && self.layers.iter().all(plain);
        self.quantized_by_name = self.quantization.is_some() && !plain;
    }

    /// What that leaves open.
    pub(crate) fn named(&self) -> Option<Unknown> {
        self.quantized_by_name.then(|| Unknown {
            what: format!(
                "which layers this copy leaves in 16 bits: its name says how it is quantised, and its files were not read; \
                 weights within {:.0} %",
                NAMED_QUANTIZATION * 100.0
            ),
            settle: "--model with its config.json, or --online".into(),
        })
    }

    /// Keys that nothing here reads, as what is not known.
    pub(crate) fn unread(&self) -> Option<Unknown> {
        (!self.unknown_keys.is_empty()).then(|| Unknown {
            what: format!("unknown keys in config.json: {}", self.unknown_keys.join(", ")),
            settle: "check whether they change the model's shape".into(),
        })
    }
}
