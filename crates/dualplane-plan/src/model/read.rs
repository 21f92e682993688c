//! From a model's files to its facts.

use dualplane_base::units::Bytes;
use serde_json::Value;

use super::family::{self, Context};
use super::keys::Keys;
use super::recognise::{flattened, language_model, recognise, thinker, unknown};
use super::{Dtype, Encoder, Model, ModelFiles, encoder, quant_read, rotary, tie};
use crate::arith::{floor_div, mul};
use crate::outcome::PlanError;

/// No model has more; a config that says so is broken or hostile.
pub(crate) const MAX_LAYERS: usize = 2048;

/// Keys that say nothing about memory: token ids, training, generation, bookkeeping.
const IRRELEVANT: &[&str] = &[
    "_attn_implementation",
    "_name_or_path",
    "activation_situ_beta",
    "activation_situ_linear_beta",
    "add_cross_attention",
    "architectures",
    "attention_dropout",
    "attention_value_scale",
    "attn_logit_softcapping",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "batch_vision_input",
    "begin_suppress_tokens",
    "beta_fast",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dropout",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "ep_size",
    "exponential_decay_length_penalty",
    "final_logit_softcapping",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "hidden_act",
    "hidden_activation",
    "hidden_dropout",
    "id2label",
    "ignore_index",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layernorm_epsilon",
    "length_penalty",
    "max_length",
    "min_length",
    "model_type",
    "n_group",
    "no_repeat_ngram_size",
    "norm_eps",
    "norm_topk_prob",
    "num_beam_groups",
    "num_beams",
    "num_logits_to_keep",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_scores",
    "pad_token_id",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "query_pre_attn_scalar",
    "remove_invalid_values",
    "repetition_penalty",
    "rescale_prenorm_residual",
    "resid_pdrop",
    "residual_dropout",
    "residual_in_fp32",
    "return_dict",
    "return_dict_in_generate",
    "rms_norm_eps",
    "rope_theta",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scoring_func",
    "sep_token_id",
    "seq_aux",
    "slice_config",
    "slice_mode",
    "speech_lora",
    "suppress_tokens",
    "swiglu_limit",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "time_step_floor",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "tokenizer_class",
    "top_k",
    "top_p",
    "topk_group",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "use_image_id",
    "use_mamba_kernels",
    "vision_batch_size",
    "vision_lora",
];

impl Model {
    /// Reads a model's files.
    ///
    /// # Errors
    /// [`PlanError::Unreadable`] where a file is not what it should be, [`PlanError::Unsupported`] where the architecture
    /// is not known, [`PlanError::Contradiction`] where the engine rejects the checkpoint.
    pub fn read(files: &ModelFiles<'_>) -> Result<Self, PlanError> {
        let config = parse("config.json", files.config)?;
        Self::of(files, &config).map_err(|e| match (unknown(&config), e) {
            // A config that is not known may say its sizes by names that are not known either.
            (Some(what), PlanError::Unreadable { why, .. }) => {
                PlanError::unsupported(format!("{what}; {why}"))
            }
            (_, e) => e,
        })
    }

    fn of(files: &ModelFiles<'_>, config: &Value) -> Result<Self, PlanError> {
        let top = Keys::new(config);
        let architecture = top
            .list("architectures")
            .and_then(|l| l.first())
            .and_then(Value::as_str)
            .ok_or_else(|| unreadable("architectures is missing"))?
            .to_owned();
        if family::is_encoder(&architecture) {
            return Err(encoder_only(&architecture, &top));
        }
        let flat = flattened(config);
        let nested = language_model(config);
        let text = nested.or(flat.as_ref()).unwrap_or(config);
        let keys = Keys::new(text);
        let (traits, estimated) = recognise(&architecture, config, text);
        let need = |names: &[&'static str]| {
            keys.u64(names)
                .filter(|n| *n > 0)
                .ok_or_else(|| family::missing(names.first().copied().unwrap_or_default()))
        };
        let hidden = need(&["hidden_size", "n_embd", "d_model", "n_embed"])?;
        let heads =
            keys.u64(&["num_attention_heads", "n_head", "n_heads", "decoder_attention_heads"]).unwrap_or(0);
        let kv_heads = keys
            .u64(&[
                "kv_n_heads",
                "n_head_kv",
                "num_kv_heads",
                "num_key_value_heads",
                "multi_query_group_num",
                "num_attention_groups",
            ])
            .unwrap_or(heads);
        let kv_heads = shared_head(&keys, kv_heads, heads);
        let layers =
            match keys.u64(&["decoder_layers", "num_hidden_layers", "n_layer", "num_layers", "n_layers"]) {
                Some(n) if n > 0 => n,
                // Nemotron-H may give the kinds of its layers only.
                _ => ["hybrid_override_pattern", "layers_block_type"]
                    .iter()
                    .find_map(|k| match text.get(k)? {
                        Value::String(s) => Some(s.len() as u64),
                        Value::Array(a) => Some(a.len() as u64),
                        _ => None,
                    })
                    .ok_or_else(|| family::missing("num_hidden_layers"))?,
            };
        if layers > MAX_LAYERS as u64 {
            return Err(unreadable(&format!("{layers} layers")));
        }
        let cx = Context { keys: &keys, traits, architecture: traits.name, hidden, heads, kv_heads, layers };
        let layers = family::layers(&cx)?;
        let max_position = keys
            .u64(&[
                "max_position_embeddings",
                "n_positions",
                "max_target_positions",
                "max_seq_len",
                "seq_length",
            ])
            .unwrap_or(0);
        let dtype = ["dtype", "torch_dtype"]
            .iter()
            .find_map(|k| text.get(k).or_else(|| config.get(k)).and_then(Value::as_str))
            .map_or(Ok(Dtype::Float32), |t| {
                Dtype::parse(t).ok_or_else(|| PlanError::unsupported(format!("dtype {t}")))
            })?;
        let hf_quant = files.hf_quant_config.map(|t| parse("hf_quant_config.json", t)).transpose()?;
        let quant = quant_read::read(config, text, hf_quant.as_ref(), &architecture)?;
        let index = files.safetensors_index.map(|t| parse("model.safetensors.index.json", t)).transpose()?;
        let tied = tie::tied(&architecture, traits, config, text);
        // Names of language models stand for what has no tower, whatever their config holds.
        let text_only = estimated.is_none()
            && !traits.inner
            && architecture.ends_with("ForCausalLM")
            && config.get("embd_layer").is_none();
        let outer = thinker(config);
        let encoder: Option<Encoder> = encoder::read(outer, &architecture).filter(|_| !text_only);
        let sound = encoder::read_sound(outer).filter(|_| !text_only);
        let (max_model_len, longest) = rotary::lengths(&keys, text)?;
        let mut model = Self {
            hidden_size: hidden,
            vocab_size: need(&["vocab_size", "padded_vocab_size"])?,
            tied,
            dtype,
            heads,
            kv_heads,
            max_model_len,
            longest,
            stretched: rotary::stretched(text),
            max_position,
            mtp_layers: keys
                .u64(&["num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"])
                .unwrap_or(0),
            rotary: Vec::new(),
            drafter: None,
            encoder,
            sound,
            quantization: quant.weights,
            declared_kv_dtype: quant.kv_dtype,
            aside: quant.aside,
            checkpoint_bytes: index
                .as_ref()
                .and_then(|i| super::keys::number(i.get("metadata")?.get("total_size")?)),
            unknown_keys: Vec::new(),
            overridden: Vec::new(),
            family: traits.family,
            traits,
            estimated,
            quantized_by_name: false,
            model_type: text.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned(),
            layers,
            text: text.clone(),
            config: config.clone(),
            architecture,
        };
        model.rotary = rotary::tables(&model);
        let mut unknown: Vec<String> = keys.unread();
        if nested.is_none() {
            unknown.retain(|k| !TOP_LEVEL.contains(&k.as_str()));
        }
        unknown.retain(|k| !IRRELEVANT.contains(&k.as_str()) && !READ_LATER.contains(&k.as_str()));
        unknown.sort();
        model.unknown_keys = unknown;
        Ok(model)
    }

    /// Tokens that a model writes at once, where it writes blocks (`canvas_length`; vLLM models/config.py).
    pub(crate) fn canvas(&self) -> Option<u64> {
        let length = || self.config.get("canvas_length").and_then(super::keys::number).unwrap_or(256);
        self.architecture.starts_with("DiffusionGemma").then(length)
    }

    /// Elements of a key head as the engine counts them for its cache.
    #[must_use]
    pub fn head_size(&self) -> u64 {
        let get = |k: &str| self.text.get(k).and_then(super::keys::number);
        get("head_dim").filter(|d| *d > 0).unwrap_or_else(|| floor_div(self.hidden_size, self.heads.max(1)))
    }
}

/// There is no pool to plan; what it takes is its weights, which its sizes bound. Source: the modules of transformers'
/// `BertLayer`; gated feed-forwards, as in ModernBERT, have a third matrix.
fn encoder_only(architecture: &str, keys: &Keys<'_>) -> PlanError {
    let what =
        format!("{architecture} reads a text at once and keeps no KV cache, so there is no pool to plan");
    let bytes = |matrices: u64| {
        let hidden = keys.u64(&["hidden_size", "n_embd"])?;
        let layers = keys.u64(&["num_hidden_layers", "n_layer"])?;
        let width = keys.u64(&["intermediate_size", "n_inner"]).unwrap_or_else(|| mul([4, hidden]));
        let words = keys.u64(&["vocab_size"])?;
        let layer = mul([4, hidden, hidden]).saturating_add(mul([matrices, hidden, width]));
        Some(mul([2, mul([words, hidden]).saturating_add(mul([layers, layer]))]))
    };
    PlanError::unsupported(match (bytes(2), bytes(3)) {
        (Some(least), Some(most)) => format!(
            "{what}: in 16 bits its weights take {} to {} by its config, and a step's activations come on top; `dualplane measure --serve` shows both planes",
            Bytes(least),
            Bytes(most)
        ),
        _ => what,
    })
}

/// Falcon, GPT-BigCode and ChatGLM say by switches whether all heads share one of keys and values.
fn shared_head(keys: &Keys<'_>, given: u64, heads: u64) -> u64 {
    let newer = keys.bool("new_decoder_architecture");
    // A count that is spelled as everywhere counts more than the older switch.
    let spelled = keys.u64(&["num_key_value_heads"]).is_some();
    match (keys.bool("multi_query").filter(|_| !spelled), keys.bool("multi_query_attention")) {
        _ if newer == Some(true) => given,
        (Some(true), _) => 1,
        (Some(false), _) | (_, Some(false)) => heads,
        _ => given,
    }
}

/// Keys of a config that stand beside the language model's.
const TOP_LEVEL: &[&str] =
    &["quantization_config", "vision_config", "audio_config", "torch_dtype", "dtype", "tie_word_embeddings"];

/// Keys that the weights read from the raw configuration, because only one family has them.
const READ_LATER: &[&str] = &[
    "attn_res_block_size",
    "audio_processor",
    "compress_rope_theta",
    "drop_vision_last_layer",
    "dtype",
    "embd_layer",
    "expert_dtype",
    "hc_eps",
    "hc_mult",
    "hc_sinkhorn_iters",
    "hidden_size_per_layer_input",
    "img_processor",
    "indexer_rope_interleave",
    "indexer_types",
    "latent_moe_use_norm",
    "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
    "mlp_layer_types",
    "moe_router_dtype",
    "partial_rotary_factor",
    "quantization_config",
    "query_num",
    "rope_interleave",
    "rope_parameters",
    "rope_scaling",
    "rotary_dim",
    "swa_rope_theta",
    "tie_word_embeddings",
    "torch_dtype",
    "version",
    "vocab_size_per_layer_input",
    "word_embed_proj_dim",
];

fn unreadable(why: &str) -> PlanError {
    PlanError::Unreadable { file: "config.json".into(), why: why.into() }
}

/// Python writes NaN and infinities into JSON, which has no such numbers; they become null.
fn without_infinities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        let skip = if in_string && c == '\\' {
            rest.chars().take(2).map(char::len_utf8).sum()
        } else {
            in_string ^= c == '"';
            c.len_utf8()
        };
        let word = ["-Infinity", "Infinity", "NaN"].iter().find(|w| !in_string && rest.starts_with(**w));
        let (text, used) =
            word.map_or_else(|| (rest.get(..skip).unwrap_or_default(), skip), |w| ("null", w.len()));
        out.push_str(text);
        rest = rest.get(used..).unwrap_or_default();
    }
    out
}

pub(crate) fn parse(file: &str, text: &str) -> Result<Value, PlanError> {
    let value: Value = serde_json::from_str(text)
        .or_else(|e| serde_json::from_str(&without_infinities(text)).map_err(|_| e))
        .map_err(|e| PlanError::Unreadable { file: file.into(), why: e.to_string() })?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(PlanError::Unreadable { file: file.into(), why: "is not a JSON object".into() })
    }
}
