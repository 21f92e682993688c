//! Separate drafters of speculative decoding: their files, and when they are counted.

use serde_json::{Value, json};

use super::launch::{Launch, Speculation};
use super::model::read::parse;
use super::model::{Attention, Model, ModelFiles};
use super::outcome::PlanError;
use super::quantity::Unknown;

/// Names of drafters with the layers of Llama (vLLM `model_executor/models/registry.py`, `transformers_utils/configs/eagle.py`).
const LLAMA: &[&str] = &[
    "LlamaForCausalLM",
    "LlamaForCausalLMEagle",
    "LlamaForCausalLMEagle3",
    "EagleLlamaForCausalLM",
    "Eagle3LlamaForCausalLM",
];

impl Model {
    /// Reads the files of a drafter that is served beside another model by `method`.
    ///
    /// # Errors
    /// As [`Model::read`]; [`PlanError::Unsupported`] also for a drafter whose layers are not known here.
    pub fn read_drafter(files: &ModelFiles<'_>, method: Speculation) -> Result<Self, PlanError> {
        let model = match method {
            Speculation::DraftModel => Self::read(files)?,
            Speculation::Eagle | Speculation::Eagle3 => {
                let mut config = parse("config.json", files.config)?;
                let name = config.pointer("/architectures/0").and_then(Value::as_str).unwrap_or_default();
                if !LLAMA.contains(&name) {
                    return Err(PlanError::unsupported(format!("the draft model's architecture {name}")));
                }
                if let Some(object) = config.as_object_mut() {
                    object.insert("architectures".into(), json!(["LlamaForCausalLM"]));
                }
                Self::read(&ModelFiles { config: &config.to_string(), ..*files })?
            }
            other => return Err(PlanError::unsupported(format!("draft model files for {other:?}"))),
        };
        let known = model.layers.iter().all(|l| matches!(l.attention, Attention::Gqa(_)));
        if known && model.encoder.is_none() {
            Ok(model)
        } else {
            Err(PlanError::unsupported("a draft model with layers other than standard attention"))
        }
    }
}

/// The drafter whose layers and weights are counted. The first engine ran drafters in a worker of their own, whose share
/// of the pool is not known here.
pub(crate) fn counted<'a>(model: &'a Model, launch: &Launch) -> Option<&'a Model> {
    let method = launch.speculative.as_ref()?.method;
    let separate = matches!(method, Speculation::Eagle | Speculation::Eagle3 | Speculation::DraftModel);
    model.drafter.as_deref().filter(|_| separate && !launch.is_first_engine())
}

/// What of speculative decoding is not counted.
pub(crate) fn unknown(model: &Model, launch: &Launch) -> Option<Unknown> {
    let s = launch.speculative.as_ref()?;
    let log = "start once, then use --from-log with the log";
    let (what, settle) = match s.method {
        Speculation::Ngram => return None,
        Speculation::Mtp if s.model.is_some() => ("the draft model's own layers and weights".to_owned(), log),
        Speculation::Mtp if model.mtp_layers == 0 => {
            ("layers of multi-token prediction: config.json declares none".to_owned(), log)
        }
        Speculation::Mtp => return None,
        Speculation::Other => ("memory of this method of speculative decoding".to_owned(), log),
        _ if counted(model, launch).is_some() => return None,
        _ if launch.is_first_engine() => {
            ("the draft model's own layers and weights, which the V0 engine kept separately".to_owned(), log)
        }
        _ => (
            "the draft model's own layers and weights: its config.json was not read".to_owned(),
            "--drafter with its directory, config.json or ID",
        ),
    };
    Some(Unknown { what, settle: settle.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gpu, Speculative, Version, plan};
    use dualplane_base::units::GIB;

    const TARGET: &str = r#"{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 32, "vocab_size": 128256,
        "intermediate_size": 14336, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
        "tie_word_embeddings": false}"#;
    const EAGLE3: &str = r#"{"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 1,
        "vocab_size": 128256, "draft_vocab_size": 32000, "intermediate_size": 14336,
        "max_position_embeddings": 2048, "torch_dtype": "bfloat16", "tie_word_embeddings": false}"#;

    fn read(config: &str) -> ModelFiles<'_> {
        ModelFiles { config, ..ModelFiles::default() }
    }

    fn launch(method: Speculation, tp: u64) -> Launch {
        let speculative = Speculative { method, num_tokens: 3, model: Some("d".into()) };
        Launch {
            version: Version(0, 11, 0),
            version_known: true,
            tp,
            speculative: Some(speculative),
            ..Launch::default()
        }
    }

    fn bytes(method: Speculation, drafter: Option<&str>, tp: u64) -> (u64, u64, Vec<String>) {
        let mut model = Model::read(&read(TARGET)).unwrap();
        model.drafter = drafter.map(|d| Box::new(Model::read_drafter(&read(d), method).unwrap()));
        let gpu = Gpu {
            name: String::new(),
            device_name: String::new(),
            total_bytes: 79 * GIB,
            capability: (9, 0),
            host_use: None,
        };
        let p = plan(&model, &launch(method, tp), &gpu).unwrap();
        let own = p.terms.iter().find(|t| t.name == "weights.drafter").map_or(0, |t| t.quantity.expected);
        (own, p.gpu.kv_cache.bytes_per_block, p.unknown.into_iter().map(|u| u.what).collect())
    }

    #[test]
    fn an_eagle3_drafter_is_one_layer_a_projection_and_a_head() {
        let (h, i) = (4096_u64, 14336_u64);
        for tp in [1, 2] {
            // Queries, keys and values read the embedding beside the hidden state.
            let cut = (4096 + 2 * 1024) * 2 * h + 4096 * h + 3 * i * h + 32_000 * h;
            let whole = h * 3 * h + 4 * h;
            let (own, block, unknown) = bytes(Speculation::Eagle3, Some(EAGLE3), tp);
            assert_eq!(own, (cut / tp + whole) * 2 + 32_000 * 8, "tp {tp}");
            assert_eq!(block, 33 * 16 * 2 * (8 / tp) * 128 * 2);
            assert!(!unknown.iter().any(|u| u.contains("draft model")), "{unknown:?}");
        }
    }

    #[test]
    fn a_draft_model_is_whole_and_a_look_up_nothing() {
        let (h, i) = (4096_u64, 14336_u64);
        let layer = (4096 + 2 * 1024) * h + 4096 * h + 3 * i * h + 2 * h;
        let rotary = 8192 * 128;
        let (own, block, _) = bytes(Speculation::DraftModel, Some(TARGET), 1);
        let tensors = (32 * layer + h + 2 * 128_256 * h + rotary) * 2;
        // The allocator rounds some of them up.
        assert!(own >= tensors && own - tensors < 256 << 20, "{own} against {tensors}");
        assert_eq!(block, 64 * 16 * 2 * 8 * 128 * 2);
        let (own, block, unknown) = bytes(Speculation::Ngram, None, 1);
        assert_eq!((own, block), (0, 32 * 16 * 2 * 8 * 128 * 2));
        assert!(!unknown.iter().any(|u| u.contains("draft model")));
    }

    #[test]
    fn what_is_not_read_is_said() {
        let (own, _, unknown) = bytes(Speculation::Eagle3, None, 1);
        assert_eq!(own, 0);
        assert!(unknown.iter().any(|u| u.contains("draft model")), "{unknown:?}");
        let (.., unknown) = bytes(Speculation::Mtp, None, 1);
        assert!(unknown.iter().any(|u| u.contains("draft model")), "{unknown:?}");
        let other = EAGLE3.replace("LlamaForCausalLMEagle3", "Eagle3DeepseekV2ForCausalLM");
        assert!(Model::read_drafter(&read(&other), Speculation::Eagle3).is_err());
    }
}
