//! A GGUF file as a model, for what asks only for shapes.

use super::facts::Facts;
use super::gguf::Gguf;
use crate::model::family::GUESS;
use crate::model::{Attention, Dtype, Family, FeedForward, Gqa, Layer, Model, QkNorm, Reach};
use crate::outcome::PlanError;

impl Gguf {
    /// The model of a file: what its caches say of its layers. Its weights are the file's tensors.
    ///
    /// # Errors
    /// [`PlanError::Unreadable`] and [`PlanError::Unsupported`].
    pub fn model(&self) -> Result<Model, PlanError> {
        let facts = Facts::of_file(self)?;
        let window = facts.window;
        let layer = |c: &super::facts::Cached| Layer {
            attention: if c.k == 0 {
                Attention::None
            } else {
                Attention::Gqa(Gqa {
                    heads: facts.heads,
                    kv_heads: 1,
                    head_dim: c.k,
                    v_head_dim: c.v,
                    reach: if c.window { Reach::Sliding(window) } else { Reach::Full },
                    qkv_bias: false,
                    o_bias: false,
                    qk_norm: QkNorm::None,
                    sinks: false,
                    output_gate: false,
                    gate_per_head: 0,
                    shares_kv: false,
                    query_only: false,
                    convolves: 0,
                    k_is_v: false,
                })
            },
            feed_forward: FeedForward::None,
            norms: 0,
        };
        Ok(Model {
            drafter: None,
            architecture: facts.architecture.clone(),
            family: Family::Decoder,
            traits: &GUESS,
            estimated: None,
            quantized_by_name: false,
            model_type: facts.architecture.clone(),
            hidden_size: facts.hidden,
            vocab_size: facts.vocab,
            tied: false,
            dtype: Dtype::Float16,
            heads: facts.heads,
            kv_heads: 1,
            max_model_len: facts.context,
            stretched: None,
            longest: facts.context,
            max_position: facts.context,
            layers: facts.layers.iter().map(layer).collect(),
            mtp_layers: 0,
            encoder: None,
            sound: None,
            rotary: Vec::new(),
            quantization: None,
            declared_kv_dtype: None,
            aside: None,
            checkpoint_bytes: None,
            unknown_keys: Vec::new(),
            overridden: Vec::new(),
            text: serde_json::Value::Null,
            config: serde_json::Value::Null,
        })
    }
}
