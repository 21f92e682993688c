//! Architectures by family: which arithmetic an architecture name stands for. The engine itself switches on these names.

mod decoder;
mod deepseek;
mod gemma;
mod hybrid;
mod llama4;
mod recurrent;
mod state_space;
mod whisper;

use serde::Serialize;

pub(crate) use self::recurrent::with_weights;
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
    /// The same with streams of the residual and inputs of each layer.
    Gemma3n,
    /// Sinks and biased experts.
    GptOss,
    /// Sliding and full attention with values of their own width.
    MimoV2,
    /// OPT.
    Opt,
    /// State spaces, alone or with attention.
    StateSpace,
    /// Latent attention twice a layer, with experts beside two dense networks.
    Longcat,
    /// Latent attention with a cache per head.
    Expanded,
    /// Mamba-2 on each layer, and blocks of attention that several layers share.
    Zamba,
    /// Attention to an encoder's output.
    Whisper,
    /// Two stacks that run in cycles: each run keeps keys and values of its own.
    Recurrent,
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

/// Where the output head stands beside the embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Only where the two are not tied.
    Untied,
    /// Allocated where they are tied, too.
    Always,
    /// The embedding, whatever the config says.
    Never,
}

/// How a model knows positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positions {
    /// Tables of rotary embeddings.
    Rotary,
    /// Learned, a row for each.
    Learned,
    /// Learned, two more rows than positions.
    LearnedFromTwo,
    /// Biases or none: nothing is kept.
    None,
}

/// How long the table is where positions have three dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mrope {
    /// Four times the positions: those of a video run ahead of its tokens.
    Fourfold,
    /// As long as the context, since 0.31.0.
    Single,
}

/// Which layers of a config with a window have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Windows {
    /// Those that the config says.
    EachLayer,
    /// All or none: the engine's code of this architecture hands no layer a window of its own, so that there is one only
    /// where all have it (vLLM engine/arg_utils.py `create_engine_config`).
    AllOrNone,
}

/// Experts that see every token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    None,
    /// So many of the routed experts' width.
    Count,
    /// One of the routed experts' width.
    One,
    /// One of a width of its own.
    Width,
    /// One of a width of its own behind a gate.
    Gated,
}

/// Which configuration says whether head and embedding are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tie {
    /// The outer one alone.
    Wrapper,
    /// The language model's alone.
    LanguageModel,
    /// One that says so is enough.
    Either,
    /// The first that says anything, from outside.
    First,
}

/// Whose model code the engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelCode {
    /// The engine's.
    Own,
    /// Transformers' (vLLM `TransformersForCausalLM`): modules without a tensor-parallel plan are whole on each rank.
    Transformers,
}

/// Whether the shares of the chosen experts are brought back to a sum of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renormalises {
    /// Where `norm_topk_prob` is not false.
    UnlessOff,
    /// Where `norm_topk_prob` is true.
    IfOn,
    Never,
}

/// Whether the query projection also makes a gate of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputGate {
    Never,
    Always,
    /// Where `attn_output_gate` is not false.
    UnlessOff,
}

/// What only the architecture's name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits {
    /// The architecture, or the first of those that share the entry.
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    pub(crate) qk_norm: QkNorm,
    pub(crate) qkv_bias: Bias,
    pub(crate) o_bias: Bias,
    /// Name of the feed-forward module of a layer.
    pub(crate) mlp: &'static str,
    /// Prefix of the layers in the checkpoint.
    pub(crate) layers: &'static str,
    pub(crate) everywhere: Everywhere,
    /// Whether the feed-forward has a gate.
    pub(crate) gated: bool,
    /// Bias on the feed-forward.
    pub(crate) mlp_bias: Bias,
    /// Vectors of the hidden size that normalise, in each layer; one with a bias counts twice.
    pub(crate) norms: u64,
    /// Whether head and embedding are one where the config does not say it.
    pub(crate) tied: bool,
    pub(crate) head: Head,
    pub(crate) positions: Positions,
    pub(crate) mrope: Mrope,
    pub(crate) windows: Windows,
    pub(crate) shared: Shared,
    /// The language model is another architecture: the one that its own configuration names.
    pub(crate) inner: bool,
    pub(crate) tie_of: Tie,
    pub(crate) backend: ModelCode,
    pub(crate) output_gate: OutputGate,
    pub(crate) renormalises: Renormalises,
    /// Whether the kernels of its states may export checkpoints while they prefill.
    pub(crate) checkpoints: bool,
    /// The feed-forward is whole on each rank.
    pub(crate) mlp_whole: bool,
    /// A table of all positions against all, a byte each.
    pub(crate) causal_mask: bool,
    /// Whether its code compiles functions by itself, with --enforce-eager too.
    pub(crate) compiles: bool,
    /// Whether the class of its configuration comes with the checkpoint.
    pub(crate) remote_code: bool,
    /// The feed-forward is four times the hidden size, whatever the config says.
    pub(crate) mlp_four_times: bool,
    /// It may be served in 16 bits with a short exponent.
    pub(crate) float16: bool,
    /// The engine hands its layers the settings of the cache.
    pub(crate) cache_dtype: bool,
}

/// What an architecture that is in no table is taken for.
pub(crate) const GUESS: Traits = Traits {
    name: "",
    family: Family::Decoder,
    qk_norm: QkNorm::None,
    qkv_bias: Bias::Config,
    o_bias: Bias::Config,
    mlp: "mlp",
    layers: "model.layers",
    everywhere: Everywhere::Nothing,
    gated: true,
    mlp_bias: Bias::Config,
    norms: 2,
    tied: false,
    head: Head::Untied,
    positions: Positions::Rotary,
    mrope: Mrope::Fourfold,
    windows: Windows::EachLayer,
    shared: Shared::Count,
    inner: false,
    tie_of: Tie::First,
    backend: ModelCode::Own,
    output_gate: OutputGate::Never,
    renormalises: Renormalises::UnlessOff,
    checkpoints: true,
    mlp_whole: false,
    causal_mask: false,
    compiles: false,
    remote_code: false,
    mlp_four_times: false,
    float16: true,
    cache_dtype: true,
};

/// The same where its keys and values are latent.
pub(crate) const GUESS_LATENT: Traits = Traits { family: Family::Deepseek, ..GUESS };

/// An entry of `knowledge/architectures.toml`.
struct Architecture {
    /// With a space between each two: a slice of its own for each of hundreds would be thrice as long as its name.
    names: &'static str,
    model_types: &'static str,
    traits: Traits,
}

/// Whether a name is one of those with spaces between them.
fn holds(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|n| n == name)
}

/// What `knowledge/architectures.toml` holds, as the build script wrote it.
const TABLE: &[Architecture] = include!(concat!(env!("OUT_DIR"), "/architectures.rs"));

/// `model_type`s of wrappers whose image tokens see each other in both directions.
const BOTH_WAYS: &[&str] = include!(concat!(env!("OUT_DIR"), "/both_ways.rs"));

/// Architectures that read a text at once and keep nothing of it.
const ENCODERS: &[&str] = include!(concat!(env!("OUT_DIR"), "/encoders.rs"));

/// Whether the engine makes no KV cache for this architecture.
pub(crate) fn is_encoder(architecture: &str) -> bool {
    ENCODERS.contains(&architecture)
}

/// Wrappers whose `version` says which architecture their language model has.
const VERSIONS: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/versions.rs"));

/// The language model of such a wrapper; a version that is not there is none.
pub(crate) fn traits_of_version(architecture: &str, version: &str) -> Option<&'static Traits> {
    let (_, _, inner) = VERSIONS.iter().find(|(a, v, _)| *a == architecture && *v == version)?;
    traits(inner)
}

/// Whether image tokens of this `model_type` see each other in both directions.
pub(crate) fn pictures_both_ways(model_type: &str) -> bool {
    BOTH_WAYS.contains(&model_type)
}

/// Whether a `model_type` is one of those that the table stands for.
pub(crate) fn knows_type(model_type: &str) -> bool {
    TABLE.iter().any(|a| holds(a.model_types, model_type))
}

/// What an architecture's name stands for.
pub(crate) fn traits(architecture: &str) -> Option<&'static Traits> {
    TABLE.iter().find(|a| holds(a.names, architecture)).map(|a| &a.traits)
}

/// What a `model_type` stands for.
pub(crate) fn traits_of_type(model_type: &str) -> Option<&'static Traits> {
    TABLE.iter().find(|a| holds(a.model_types, model_type)).map(|a| &a.traits)
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
        const NAMES: &[&str] = &["attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias"];
        self.bias_of(bias, NAMES)
    }

    /// Whether the query projection also makes a gate of the output.
    pub(crate) fn output_gate(&self) -> bool {
        // Read in any case, so that it is no unknown key.
        let asked = self.keys.bool("attn_output_gate");
        match self.traits.output_gate {
            OutputGate::Never => false,
            OutputGate::Always => true,
            OutputGate::UnlessOff => asked != Some(false),
        }
    }

    /// What the architecture says, or one of these keys.
    pub(crate) fn bias_of(&self, bias: Bias, names: &[&'static str]) -> bool {
        match bias {
            Bias::Never => false,
            Bias::Always => true,
            Bias::Config => names.iter().any(|n| self.keys.on(n)),
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
        Family::StateSpace => state_space::layers(cx),
        Family::Zamba => state_space::zamba(cx),
        Family::Whisper => whisper::layers(cx),
        Family::Recurrent => recurrent::layers(cx),
        Family::Longcat => deepseek::longcat(cx),
        Family::Expanded => deepseek::expanded(cx),
        Family::QwenHybrid => hybrid::qwen(cx),
        Family::NemotronH => hybrid::nemotron(cx),
        Family::KimiLinear => hybrid::kimi(cx),
        Family::Llama4 => llama4::layers(cx),
        Family::Gemma4 | Family::Gemma | Family::Gemma3n => gemma::layers(cx),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_type_stands_once() {
        for key in [|a: &Architecture| a.names, |a: &Architecture| a.model_types] {
            let mut all: Vec<&str> =
                TABLE.iter().flat_map(|a| key(a).split(' ')).filter(|n| !n.is_empty()).collect();
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
