//! Bytes that one token of the pool takes on a rank: the "cell".
//!
//! Source: SGLang 0.5.23 model_executor/pool_configurator.py; 0.4.6 to 0.5.9 model_runner.py `profile_max_num_token`.

use super::code::CODE;
use crate::arith::{floor_div, mul};
use crate::gpu::Gpu;
use crate::launch::kv_heads;
use crate::launch::{Launch, Speculation};
use crate::model::{Attention, Dtype, Family, Gqa, Mla, Model, Reach};
use crate::outcome::PlanError;
use dualplane_base::Version;

/// Layers of one kind, in bytes per token over all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) layers: u64,
    pub(crate) bytes: u64,
    /// Of `bytes`, those of keys; the rest are values. Latent rows count as keys.
    pub(crate) keys: u64,
}

/// What a token takes on one pipeline stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cells {
    /// Layers that keep every token.
    pub(crate) full: Part,
    /// Layers that keep a window, where the engine gives them a pool of their own.
    pub(crate) window: Part,
    /// The window, in tokens.
    pub(crate) window_tokens: u64,
    /// Bytes per token of a drafter's own pool.
    pub(crate) drafter: u64,
    /// Whether rows are latent: one row for keys and values.
    pub(crate) latent: bool,
}

/// Dtype of the cache as the engine settles it, and the bytes of one element.
pub(crate) fn dtype(
    model: &Model,
    launch: &Launch,
    gpu: &Gpu,
    served: Dtype,
) -> Result<(String, u64), PlanError> {
    let sparse = model.layers.iter().any(|l| matches!(l.attention, Attention::Mla(m) if m.indexer.is_some()));
    let asked = match launch.kv_cache_dtype.as_str() {
        // Sparse attention reads 8 bits on Blackwell (0.5.9 server_args.py `_set_default_nsa_kv_cache_dtype`).
        "auto" if sparse && gpu.capability.0 >= 10 => "fp8_e4m3",
        // Elsewhere in 16 bits, whatever ModelOpt's file says (0.5.23 arg_groups/overrides.py `_dsa_kv_cache_dtype_default`).
        "auto" if sparse && launch.version >= Version(0, 5, 23) => "bfloat16",
        // Only ModelOpt's own file says it to the engine (0.5.23 mem_cache/kv_cache_dtype.py).
        "auto" if declared(model) && launch.version >= Version(0, 5, 23) => "fp8_e4m3",
        "auto" => served.as_str(),
        "bf16" => "bfloat16",
        given => given,
    };
    if sparse && launch.version >= Version(0, 5, 23) && !["bfloat16", "fp8_e4m3"].contains(&asked) {
        return Err(PlanError::contradiction(
            "--kv-cache-dtype",
            format!("{asked}: DeepSeek DSA only supports bf16/bfloat16 or fp8_e4m3 kv_cache_dtype"),
        ));
    }
    match asked {
        "fp8_e4m3" | "fp8_e5m2" | "fp8" => Ok((asked.to_owned(), 1)),
        "bfloat16" | "float16" | "float32" => {
            Ok((asked.to_owned(), Dtype::parse(asked).map_or(2, Dtype::bytes)))
        }
        "fp4_e2m1" | "nvfp4" | "mxfp8" | "mxfp4" => {
            Err(PlanError::unsupported(format!("--kv-cache-dtype {asked} of SGLang")))
        }
        other => Err(PlanError::contradiction("--kv-cache-dtype", format!("unknown dtype {other}"))),
    }
}

/// Whether ModelOpt declares an 8-bit cache.
pub(crate) fn declared(model: &Model) -> bool {
    model.declared_kv_dtype.as_deref().is_some_and(|d| d.starts_with("fp8"))
        && model.quantization.as_ref().is_some_and(|q| q.method.as_str().starts_with("modelopt"))
}

/// What decides cells besides the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) gpu: &'a Gpu,
    /// Ranks that share the heads.
    pub(crate) attention_tp: u64,
    /// Bytes of one element.
    pub(crate) element: u64,
}

/// The cells of one stage.
pub(crate) fn cells(
    model: &Model,
    s: &Setting<'_>,
    stage_of: &[u64],
    stage: u64,
) -> Result<Cells, PlanError> {
    let launch = s.launch;
    let own_windows =
        CODE.own_windows.contains(&model.architecture.as_str()) && !launch.sglang.disable_hybrid_swa_memory;
    let mut out = Cells::default();
    let mut widths: Option<u64> = None;
    for (layer, _) in model.layers.iter().zip(stage_of).filter(|(_, of)| **of == stage) {
        match layer.attention {
            Attention::Gqa(g) if g.shares_kv => {
                return Err(PlanError::unsupported("SGLang's pool for layers that share keys and values"));
            }
            Attention::Gqa(g) => {
                let (bytes, keys) = per_head(&g, s);
                let window = match g.reach {
                    Reach::Full | Reach::Encoder => None,
                    Reach::Sliding(n) | Reach::Chunked(n) => Some(n).filter(|_| own_windows),
                };
                if window.is_none() && !own_windows && widths.replace(bytes).is_some_and(|w| w != bytes) {
                    return Err(PlanError::unsupported("SGLang's pool for layers of several widths"));
                }
                let part = if window.is_some() { &mut out.window } else { &mut out.full };
                part.layers += 1;
                part.bytes = part.bytes.saturating_add(bytes);
                part.keys = part.keys.saturating_add(keys);
                out.window_tokens = out.window_tokens.max(window.unwrap_or(0));
            }
            Attention::Mla(m) => {
                let bytes = latent(&m, s)?;
                out.latent = true;
                out.full.layers += 1;
                out.full.bytes = out.full.bytes.saturating_add(bytes);
                out.full.keys = out.full.bytes;
            }
            Attention::Compressed(_) => {
                return Err(PlanError::unsupported("SGLang's pools for a window and a compressed past"));
            }
            // States have pools of their own.
            _ => {}
        }
    }
    if out.window.layers > 0 && launch.version < Version(0, 5, 16) {
        return Err(PlanError::unsupported(format!(
            "pools of window layers in SGLang {}; known from 0.5.16",
            launch.version
        )));
    }
    // Slots of requests that are on their way are added, and how many is not read here.
    let decodes = launch.sglang.disaggregation.as_deref() == Some("decode");
    if out.window.layers > 0 && decodes && launch.max_num_seqs.is_some() {
        return Err(PlanError::unsupported("the windows' pool of SGLang's decode servers"));
    }
    out.drafter = drafter(&out, model, launch);
    Ok(out)
}

/// Bytes of a token of one layer, and those of its keys.
fn per_head(g: &Gqa, s: &Setting<'_>) -> (u64, u64) {
    let heads = kv_heads(g.kv_heads, s.attention_tp);
    let keys = mul([heads, g.head_dim, s.element]);
    // Until 0.5.9 both were counted by the width of keys.
    let v = if s.launch.version < Version(0, 5, 16) { g.head_dim } else { g.v_head_dim };
    (keys.saturating_add(mul([heads, v, s.element])), keys)
}

fn latent(m: &Mla, s: &Setting<'_>) -> Result<u64, PlanError> {
    let width = m.kv_lora_rank.saturating_add(m.rope_dim);
    let Some(ix) = m.indexer else { return Ok(mul([width, s.element])) };
    let version = s.launch.version;
    if version < Version(0, 5, 5) {
        return Err(PlanError::unsupported(format!(
            "sparse attention in SGLang {version}; known from 0.5.5"
        )));
    }
    let row = match (s.element, s.gpu.capability.0) {
        // TensorRT-LLM's kernels take plain rows.
        (1, 10) if version >= Version(0, 5, 23) => width,
        // 512 bytes, four scales of 4 bytes, 64 rotated elements in 16 bits.
        (1, 9) => [m.kv_lora_rank, mul([floor_div(m.kv_lora_rank, 128), 4]), mul([m.rope_dim, 2])]
            .into_iter()
            .fold(0, u64::saturating_add),
        (1, _) => return Err(PlanError::unsupported("8-bit rows of sparse attention off Hopper in SGLang")),
        (e, _) => mul([width, e]),
    };
    // A layer that takes another's selection kept its keys all the same until 0.5.23.
    let selects = ix.own || version < Version(0, 5, 23);
    let keys = ix.head_dim.saturating_add(mul([floor_div(ix.head_dim, 128), 4]));
    Ok(row.saturating_add(if selects { keys } else { 0 }))
}

fn counts_own_drafter(model: &Model) -> bool {
    let key = "num_nextn_predict_layers";
    // LongCat's class fills the key in.
    model.family == Family::Longcat || model.text.get(key).is_some_and(serde_json::Value::is_number)
}

/// A drafter's pool has as many tokens as the model's and layers like its.
fn drafter(cells: &Cells, model: &Model, launch: &Launch) -> u64 {
    let layers = match launch.speculative.as_ref().map(|s| s.method) {
        // Layers of the model's own are counted by one key of its config only: those of a model that spells their number
        // otherwise (Qwen3.5: `mtp_num_hidden_layers`) are not charged to the cells, and their pool comes out of what is kept
        // beside them (model_runner_components/spec_aux_hidden_state.py).
        Some(Speculation::Mtp) if !counts_own_drafter(model) => 0,
        Some(Speculation::Mtp) => model.mtp_layers.clamp(1, 64),
        Some(Speculation::Eagle | Speculation::Eagle3) => 1,
        _ => 0,
    };
    // Until 0.5.9 its pool came out of what was kept for activations.
    if launch.version < Version(0, 5, 16) || cells.full.layers == 0 {
        return 0;
    }
    floor_div(mul([cells.full.bytes, layers]), cells.full.layers)
}

impl Cells {
    /// Bytes of one token, with its share of the windows' pool.
    pub(crate) fn bytes(&self, ratio: f64) -> f64 {
        if self.full.layers == 0 {
            (self.window.bytes.saturating_add(self.drafter)) as f64
        } else {
            (self.full.bytes.saturating_add(self.drafter)) as f64 + ratio * self.window.bytes as f64
        }
    }
}
