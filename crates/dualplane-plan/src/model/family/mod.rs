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

/// An entry of `knowledge/architectures.toml`.
struct Architecture {
    names: &'static [&'static str],
    model_types: &'static [&'static str],
    traits: Traits,
}

/// What `knowledge/architectures.toml` holds, as the build script wrote it.
const TABLE: &[Architecture] = include!(concat!(env!("OUT_DIR"), "/architectures.rs"));

/// Whether a `model_type` is one of those that the table stands for.
pub(crate) fn knows_type(model_type: &str) -> bool {
    TABLE.iter().any(|a| a.model_types.contains(&model_type))
}

/// What an architecture's name stands for.
pub(crate) fn traits(architecture: &str) -> Option<&'static Traits> {
    TABLE.iter().find(|a| a.names.contains(&architecture)).map(|a| &a.traits)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_type_stands_once() {
        for key in [|a: &Architecture| a.names, |a: &Architecture| a.model_types] {
            let mut all: Vec<&str> = TABLE.iter().flat_map(key).copied().collect();
            all.sort_unstable();
            assert!(all.windows(2).all(|w| w[0] != w[1]), "{all:?}");
            assert!(all.len() > 30);
        }
    }

    #[test]
    fn an_entry_says_what_its_name_switches_on() {
        let llama = traits("LlamaForCausalLM").unwrap();
        assert_eq!((llama.family, llama.mlp, llama.layers), (Family::Decoder, "mlp", "model.layers"));
        assert_eq!((llama.qkv_bias, llama.o_bias), (Bias::Config, Bias::Config));
        let hybrid = traits("NemotronHForCausalLM").unwrap();
        assert_eq!((hybrid.family, hybrid.layers), (Family::NemotronH, "backbone.layers"));
        assert_eq!(hybrid.everywhere, Everywhere::EmbeddingAndHead);
        assert_eq!(traits("Qwen3ForCausalLM").unwrap().qk_norm, QkNorm::PerHead);
        assert_eq!(traits("Ernie4_5ForCausalLM").unwrap().o_bias, Bias::Never);
        assert!(traits("Qwen3").is_none() && knows_type("ernie4_5") && !knows_type("ernie"));
    }
}
