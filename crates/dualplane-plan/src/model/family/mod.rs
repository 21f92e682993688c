//! Architectures by family: which arithmetic an architecture name stands for. The engine itself switches on these names.

mod decoder;
mod deepseek;
mod gemma;
mod hybrid;
mod llama4;

use serde::Serialize;

use super::keys::Keys;
use super::layer::{Layer, QkNorm};
use crate::outcome::PlanError;

/// A family of architectures that share their layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Decoders with GQA, dense or with experts.
    Decoder,
    /// MLA, with or without a selector.
    Deepseek,
    /// Compressed attention.
    DeepseekV4,
    /// Gated DeltaNet and gated attention.
    QwenHybrid,
    /// Mamba-2, attention and feed-forward as layers of their own.
    NemotronH,
    /// KDA and MLA.
    KimiLinear,
    /// Chunked attention.
    Llama4,
    /// Sliding and full attention of different shapes.
    Gemma4,
    /// Sliding and full attention of one shape, four norms a layer.
    Gemma,
    /// Sinks and biased experts.
    GptOss,
    /// Sliding and full attention with values of their own width.
    MimoV2,
    /// OPT.
    Opt,
}

/// Where biases come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bias {
    Never,
    Always,
    /// `attention_bias` of the config.
    Config,
}

/// What every pipeline stage builds although only the first or the last uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Everywhere {
    Nothing,
    Embedding,
    EmbeddingAndHead,
}

/// What only the architecture's name tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    pub(crate) family: Family,
    pub(crate) qk_norm: QkNorm,
    pub(crate) qkv_bias: Bias,
    pub(crate) o_bias: Bias,
    /// Name of the feed-forward module of a layer.
    pub(crate) mlp: &'static str,
    /// Prefix of the layers in the checkpoint.
    pub(crate) layers: &'static str,
    pub(crate) everywhere: Everywhere,
}

const BASE: Traits = Traits {
    family: Family::Decoder,
    qk_norm: QkNorm::None,
    qkv_bias: Bias::Config,
    o_bias: Bias::Config,
    mlp: "mlp",
    layers: "model.layers",
    everywhere: Everywhere::Nothing,
};

/// Names as in `architectures` of config.json. Source: vLLM `model_executor/models/registry.py` and the files it names.
const TABLE: &[(&[&str], Traits)] = &[
    (&["LlamaForCausalLM", "MistralForCausalLM", "Mistral3ForConditionalGeneration"], BASE),
    (
        &["Qwen2ForCausalLM", "Qwen2_5_VLForConditionalGeneration", "Qwen2VLForConditionalGeneration"],
        Traits { qkv_bias: Bias::Always, o_bias: Bias::Never, ..BASE },
    ),
    (
        &["Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration"],
        Traits { qk_norm: QkNorm::PerHead, o_bias: Bias::Never, ..BASE },
    ),
    (
        &["Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration"],
        Traits {
            qk_norm: QkNorm::PerHead,
            o_bias: Bias::Never,
            everywhere: Everywhere::EmbeddingAndHead,
            ..BASE
        },
    ),
    (
        &["Qwen2MoeForCausalLM"],
        Traits {
            qkv_bias: Bias::Always,
            o_bias: Bias::Never,
            everywhere: Everywhere::EmbeddingAndHead,
            ..BASE
        },
    ),
    (&["Phi3ForCausalLM"], Traits { qkv_bias: Bias::Never, o_bias: Bias::Never, ..BASE }),
    (
        &["MixtralForCausalLM"],
        Traits {
            qkv_bias: Bias::Never,
            o_bias: Bias::Never,
            mlp: "block_sparse_moe",
            everywhere: Everywhere::EmbeddingAndHead,
            ..BASE
        },
    ),
    (
        &["MiniMaxM2ForCausalLM"],
        Traits {
            qk_norm: QkNorm::Whole,
            qkv_bias: Bias::Config,
            o_bias: Bias::Never,
            mlp: "block_sparse_moe",
            ..BASE
        },
    ),
    (&["Glm4MoeForCausalLM"], Traits { o_bias: Bias::Never, ..BASE }),
    (
        &["GptOssForCausalLM"],
        Traits {
            family: Family::GptOss,
            qkv_bias: Bias::Always,
            o_bias: Bias::Always,
            everywhere: Everywhere::EmbeddingAndHead,
            ..BASE
        },
    ),
    (
        &["MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"],
        Traits { family: Family::MimoV2, o_bias: Bias::Never, ..BASE },
    ),
    (
        &[
            "DeepseekV2ForCausalLM",
            "DeepseekV3ForCausalLM",
            "DeepseekV32ForCausalLM",
            "GlmMoeDsaForCausalLM",
            "KimiK25ForConditionalGeneration",
        ],
        Traits { family: Family::Deepseek, ..BASE },
    ),
    (&["DeepseekV4ForCausalLM"], Traits { family: Family::DeepseekV4, mlp: "ffn", layers: "layers", ..BASE }),
    (
        &[
            "Qwen3NextForCausalLM",
            "Qwen3_5ForConditionalGeneration",
            "Qwen3_5MoeForConditionalGeneration",
            "Qwen3_5ForCausalLM",
            "Qwen3_5MoeForCausalLM",
        ],
        Traits {
            family: Family::QwenHybrid,
            qk_norm: QkNorm::PerHead,
            o_bias: Bias::Never,
            everywhere: Everywhere::Embedding,
            ..BASE
        },
    ),
    (
        &["NemotronHForCausalLM"],
        Traits {
            family: Family::NemotronH,
            mlp: "mixer",
            layers: "backbone.layers",
            everywhere: Everywhere::EmbeddingAndHead,
            ..BASE
        },
    ),
    (
        &["KimiK3ForConditionalGeneration", "KimiLinearForCausalLM"],
        Traits { family: Family::KimiLinear, mlp: "block_sparse_moe", ..BASE },
    ),
    (
        &["Llama4ForConditionalGeneration", "Llama4ForCausalLM"],
        Traits { family: Family::Llama4, mlp: "feed_forward", ..BASE },
    ),
    (
        &["Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"],
        Traits {
            family: Family::Gemma4,
            qk_norm: QkNorm::PerHead,
            everywhere: Everywhere::Embedding,
            ..BASE
        },
    ),
    (
        &["Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"],
        Traits { family: Family::Gemma, qk_norm: QkNorm::PerHead, everywhere: Everywhere::Embedding, ..BASE },
    ),
    (&["Gemma2ForCausalLM"], Traits { family: Family::Gemma, ..BASE }),
    (
        &["OPTForCausalLM"],
        Traits { family: Family::Opt, qkv_bias: Bias::Always, o_bias: Bias::Always, ..BASE },
    ),
];

/// `model_type` of what the table holds. vLLM and transformers refuse others.
const TYPES: &[&str] = &[
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "deepseek_v4",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gemma4",
    "gemma4_text",
    "glm4_moe",
    "glm_moe_dsa",
    "gpt_oss",
    "kimi_k2",
    "kimi_k25",
    "kimi_k3",
    "kimi_linear",
    "llama",
    "llama4",
    "llama4_text",
    "mimo_v2_flash",
    "mimo_v2",
    "minimax_m2",
    "mistral",
    "mistral3",
    "mixtral",
    "nemotron_h",
    "opt",
    "phi3",
    "qwen2",
    "qwen2_5_vl",
    "qwen2_moe",
    "qwen2_vl",
    "qwen3",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen3_5_text",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_vl",
    "qwen3_vl_moe",
    "qwen3_vl_moe_text",
    "qwen3_vl_text",
];

/// Whether a `model_type` is one of those that the table stands for.
pub(crate) fn knows_type(model_type: &str) -> bool {
    TYPES.contains(&model_type)
}

/// What an architecture's name stands for.
pub(crate) fn traits(architecture: &str) -> Option<&'static Traits> {
    TABLE.iter().find(|(names, _)| names.contains(&architecture)).map(|(_, t)| t)
}

/// What every family reads its layers from.
pub(crate) struct Context<'a> {
    /// The language model's configuration.
    pub(crate) keys: &'a Keys<'a>,
    pub(crate) traits: &'static Traits,
    pub(crate) architecture: &'a str,
    pub(crate) hidden: u64,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) layers: u64,
}

impl Context<'_> {
    /// `attention_bias` or what the architecture says.
    pub(crate) fn bias(&self, bias: Bias) -> bool {
        match bias {
            Bias::Never => false,
            Bias::Always => true,
            Bias::Config => self.keys.on("attention_bias") || self.keys.on("qkv_bias"),
        }
    }

    /// A key that the family cannot do without.
    pub(crate) fn need(&self, name: &'static str) -> Result<u64, PlanError> {
        self.keys.u64(&[name]).ok_or_else(|| missing(name))
    }

    /// Elements per head.
    pub(crate) fn head_dim(&self) -> u64 {
        self.keys
            .u64(&["head_dim"])
            .filter(|d| *d > 0)
            .or_else(|| self.keys.u64(&["hidden_size_per_head"]))
            .unwrap_or_else(|| crate::arith::floor_div(self.hidden, self.heads.max(1)))
    }

    /// The kind of layer `index` in `layer_types`.
    pub(crate) fn layer_type(&self, index: u64) -> Option<&str> {
        self.keys.list("layer_types")?.get(usize::try_from(index).ok()?)?.as_str()
    }

    /// A list of numbers with one entry a layer.
    pub(crate) fn per_layer(&self, name: &'static str, index: u64) -> Option<u64> {
        super::keys::number(self.keys.list(name)?.get(usize::try_from(index).ok()?)?)
    }
}

/// A key that is not there.
pub(crate) fn missing(name: &str) -> PlanError {
    PlanError::Unreadable { file: "config.json".into(), why: format!("{name} is missing or not a number") }
}

/// The layers of a model.
pub(crate) fn layers(cx: &Context<'_>) -> Result<Vec<Layer>, PlanError> {
    match cx.traits.family {
        Family::Decoder | Family::GptOss | Family::MimoV2 | Family::Opt => decoder::layers(cx),
        Family::Deepseek => deepseek::layers(cx),
        Family::DeepseekV4 => deepseek::compressed(cx),
        Family::QwenHybrid => hybrid::qwen(cx),
        Family::NemotronH => hybrid::nemotron(cx),
        Family::KimiLinear => hybrid::kimi(cx),
        Family::Llama4 => llama4::layers(cx),
        Family::Gemma4 | Family::Gemma => gemma::layers(cx),
    }
}
