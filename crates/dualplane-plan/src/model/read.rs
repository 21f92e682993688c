//! From a model's files to its facts.

use serde_json::Value;

use super::family::{self, Context};
use super::keys::Keys;
use super::{Dtype, Encoder, Model, ModelFiles, encoder, quant_read, rotary};
use crate::arith::floor_div;
use crate::outcome::PlanError;

/// No model has more; a config that says so is broken or hostile.
pub(crate) const MAX_LAYERS: usize = 2048;

/// Keys that say nothing about memory: token ids, training, generation, bookkeeping.
const IRRELEVANT: &[&str] = &[
    "_name_or_path",
    "_attn_implementation",
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
    "hidden_activation",
    "hidden_act",
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
    "min_length",
    "max_length",
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
    "residual_dropout",
    "residual_in_fp32",
    "resid_pdrop",
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
    "suppress_tokens",
    "swiglu_limit",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "time_step_floor",
    "time_step_max",
    "time_step_min",
    "time_step_limit",
    "tokenizer_class",
    "top_k",
    "top_p",
    "topk_group",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "use_mamba_kernels",
];

impl Model {
    /// Reads a model's files.
    ///
    /// # Errors
    /// [`PlanError::Unreadable`] where a file is not what it should be, [`PlanError::Unsupported`] where the architecture
    /// is not known, [`PlanError::Contradiction`] where the engine rejects the checkpoint.
    pub fn read(files: &ModelFiles<'_>) -> Result<Self, PlanError> {
        let config = parse("config.json", files.config)?;
        let top = Keys::new(&config);
        let architecture = top
            .list("architectures")
            .and_then(|l| l.first())
            .and_then(Value::as_str)
            .ok_or_else(|| unreadable("architectures is missing"))?
            .to_owned();
        let Some(traits) = family::traits(&architecture) else {
            return Err(PlanError::unsupported(format!("architecture {architecture}")));
        };
        let nested = ["text_config", "llm_config", "language_config"]
            .iter()
            .find_map(|k| config.get(k))
            .filter(|v| v.is_object());
        let text = nested.unwrap_or(&config);
        let keys = Keys::new(text);
        for holder in [&config, text] {
            if let Some(kind) = holder.get("model_type").and_then(Value::as_str)
                && !family::knows_type(kind)
            {
                return Err(PlanError::unsupported(format!("model_type {kind} of {architecture}")));
            }
        }
        let need = |names: &[&'static str]| {
            keys.u64(names)
                .filter(|n| *n > 0)
                .ok_or_else(|| family::missing(names.first().copied().unwrap_or_default()))
        };
        let hidden = need(&["hidden_size", "n_embd", "d_model"])?;
        let heads = keys.u64(&["num_attention_heads", "n_head"]).unwrap_or(0);
        let kv_heads = keys
            .u64(&[
                "n_head_kv",
                "num_kv_heads",
                "num_key_value_heads",
                "multi_query_group_num",
                "num_attention_groups",
            ])
            .unwrap_or(heads);
        let layers = match keys.u64(&["num_hidden_layers", "n_layer", "num_layers"]) {
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
        let cx =
            Context { keys: &keys, traits, architecture: &architecture, hidden, heads, kv_heads, layers };
        let layers = family::layers(&cx)?;
        let max_position = keys.u64(&["max_position_embeddings"]).unwrap_or(0);
        let dtype = ["dtype", "torch_dtype"]
            .iter()
            .find_map(|k| text.get(k).or_else(|| config.get(k)).and_then(Value::as_str))
            .map_or(Ok(Dtype::Float32), |t| {
                Dtype::parse(t).ok_or_else(|| PlanError::unsupported(format!("dtype {t}")))
            })?;
        let hf_quant = files.hf_quant_config.map(|t| parse("hf_quant_config.json", t)).transpose()?;
        let quant = quant_read::read(&config, text, hf_quant.as_ref(), &architecture)?;
        let index = files.safetensors_index.map(|t| parse("model.safetensors.index.json", t)).transpose()?;
        let tied = config
            .get("tie_word_embeddings")
            .or_else(|| text.get("tie_word_embeddings"))
            .and_then(Value::as_bool)
            // transformers' default; Gemma sets it in its class.
            .unwrap_or(matches!(
                traits.family,
                family::Family::Gemma | family::Family::Gemma4 | family::Family::Opt
            ));
        let encoder: Option<Encoder> = encoder::read(&config, &architecture);
        let mut model = Self {
            hidden_size: hidden,
            vocab_size: need(&["vocab_size"])?,
            tied,
            dtype,
            heads,
            kv_heads,
            max_model_len: rotary::max_model_len(&keys, text)?,
            max_position,
            mtp_layers: keys
                .u64(&["num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"])
                .unwrap_or(0),
            rotary: Vec::new(),
            drafter: None,
            encoder,
            quantization: quant.weights,
            declared_kv_dtype: quant.kv_dtype,
            checkpoint_bytes: index
                .as_ref()
                .and_then(|i| super::keys::number(i.get("metadata")?.get("total_size")?)),
            unknown_keys: Vec::new(),
            family: traits.family,
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

    /// Elements of a key head as the engine counts them for its cache.
    #[must_use]
    pub fn head_size(&self) -> u64 {
        let get = |k: &str| self.text.get(k).and_then(super::keys::number);
        get("head_dim").filter(|d| *d > 0).unwrap_or_else(|| floor_div(self.hidden_size, self.heads.max(1)))
    }
}

/// Keys of a config that stand beside the language model's.
const TOP_LEVEL: &[&str] =
    &["quantization_config", "vision_config", "audio_config", "torch_dtype", "dtype", "tie_word_embeddings"];

/// Keys that the weights read from the raw configuration, because only one family has them.
const READ_LATER: &[&str] = &[
    "attn_res_block_size",
    "compress_rope_theta",
    "dtype",
    "expert_dtype",
    "hc_eps",
    "hc_mult",
    "hc_sinkhorn_iters",
    "hidden_size_per_layer_input",
    "indexer_rope_interleave",
    "indexer_types",
    "latent_moe_use_norm",
    "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
    "mlp_layer_types",
    "moe_router_dtype",
    "partial_rotary_factor",
    "quantization_config",
    "rope_interleave",
    "rope_parameters",
    "rope_scaling",
    "rotary_dim",
    "swa_rope_theta",
    "tie_word_embeddings",
    "torch_dtype",
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
